import CLinux
import SystemPackage
import Glibc
import JobModel
import Synchronization

/// The jobs whose source is at work, in a file that outlives the process but is never synced.
///
/// A mark is one write of eight bytes into the page cache, which a killed process leaves whole; the machine's end may
/// leave anything, so the file names the boot that it is of, and counts for nothing in another one. What cannot be
/// written is done without: a mark only helps to find the job that kills the daemon.
///
/// Slots that became free are used again, so the file is as long as the most sources that were ever at work at once.
final class CrashMarks: Sendable {
    /// The most slots that there are, and that are read.
    static let mostSlots = 1 << 16
    private static let magic: [UInt8] = Array("deferd\u{1}m".utf8)
    private static let headerLength = 64

    private struct Slot {
        let index: Int
        /// Whether a daemon before this one was killed while the job was at work.
        var isOfLastLife: Bool
    }

    private struct State: ~Copyable {
        var file: Int32?
        var slots: [JobID: Slot] = [:]
        var free: [Int] = []
        var used = 0
        var countOfLastLife = 0

        deinit { if let file { close(file) } }
    }

    private let state: Mutex<State>

    /// Opens the file at `path`, or makes it. `boot` tells the machine's boots apart.
    init(_ path: String, boot: String = CrashMarks.boot, report: (StoreError) -> Void) {
        var state = State()
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        if file >= 0 {
            state.file = file
            Self.load(&state, file, boot)
        } else {
            report(
                StoreError(
                    .write,
                    "The file \(path) cannot be opened (\(Errno(rawValue: errno))), so a job that kills the "
                        + "daemon will not be noticed; check the directory's permissions."))
        }
        self.state = Mutex(state)
    }

    /// The machine's present boot; empty where the kernel does not say.
    static let boot = String(cString: deferd_boot_id())

    private static func header(_ boot: String) -> [UInt8] {
        let text = magic + Array(boot.utf8.prefix(headerLength - magic.count))
        return text + [UInt8](repeating: 0, count: headerLength - text.count)
    }

    private static func load(_ state: inout State, _ file: Int32, _ boot: String) {
        var bytes = [UInt8](repeating: 0, count: headerLength + 8 * mostSlots)
        let count = bytes.withUnsafeMutableBytes { pread(file, $0.baseAddress, $0.count, 0) }
        let header = header(boot)
        guard count >= headerLength, bytes.starts(with: header) else {
            _ = ftruncate(file, 0)
            // Room for the first slots, so that a disk that is full later does not matter.
            let start = header + [UInt8](repeating: 0, count: 4096 - header.count)
            _ = start.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, 0) }
            return
        }
        state.used = (count - headerLength) / 8
        for index in 0..<state.used {
            let job = bytes.withUnsafeBytes {
                $0.loadUnaligned(fromByteOffset: headerLength + 8 * index, as: JobID.self)
            }
            if job > 0, state.slots[job] == nil {
                state.slots[job] = Slot(index: index, isOfLastLife: true)
            } else {
                state.free.append(index)
            }
        }
        state.free.reverse()
        state.countOfLastLife = state.slots.count
    }

    /// The marked jobs, by their ids.
    var jobs: [JobID] { state.withLock { $0.slots.keys.sorted() } }

    func mark(_ job: JobID, isWorking: Bool) {
        state.withLock { state in
            if isWorking {
                if let slot = state.slots[job] {
                    if slot.isOfLastLife { state.countOfLastLife -= 1 }
                    state.slots[job]?.isOfLastLife = false
                    return
                }
                guard state.file != nil, let index = state.free.popLast() ?? Self.newSlot(&state) else { return }
                state.slots[job] = Slot(index: index, isOfLastLife: false)
                Self.write(job, at: index, state.file)
            } else {
                Self.remove(job, &state)
            }
        }
    }

    /// What was marked when the last daemon was killed is settled for jobs that were saved since: they know of it.
    func settle(_ jobs: [Job]) {
        state.withLock { state in
            guard state.countOfLastLife > 0 else { return }
            for job in jobs where state.slots[job.id]?.isOfLastLife == true { Self.remove(job.id, &state) }
        }
    }

    /// Forgets the marks of the last daemon but those of `jobs`: of what is over or gone, as it was killed between storing
    /// that and forgetting the mark.
    func keepOfLastLife(_ jobs: [Job]) {
        let kept = Set(jobs.map(\.id))
        state.withLock { state in
            for (job, slot) in state.slots where slot.isOfLastLife && !kept.contains(job) { Self.remove(job, &state) }
        }
    }

    /// Forgets all marks, as the daemon ends by itself.
    func clear() {
        state.withLock { state in
            if let file = state.file {
                _ = ftruncate(file, 0)
                Glibc.close(file)
            }
            state.file = nil
            state.slots = [:]
            state.countOfLastLife = 0
        }
    }

    private static func newSlot(_ state: inout State) -> Int? {
        guard state.used < mostSlots else { return nil }
        state.used += 1
        return state.used - 1
    }

    private static func remove(_ job: JobID, _ state: inout State) {
        guard let slot = state.slots.removeValue(forKey: job) else { return }
        if slot.isOfLastLife { state.countOfLastLife -= 1 }
        state.free.append(slot.index)
        write(0, at: slot.index, state.file)
    }

    private static func write(_ job: JobID, at index: Int, _ file: Int32?) {
        guard let file else { return }
        withUnsafeBytes(of: job) { _ = pwrite(file, $0.baseAddress, 8, off_t(headerLength + 8 * index)) }
    }
}
