import Glibc
import JobModel
import Logging
import NIOCore
import Synchronization
import SystemPackage

/// Writes the output of one attempt of a program to its log.
///
/// Output without room, on the disk or within the quota of the user, is dropped and counted. The file is made with the first
/// byte. It is not synced: a power failure may take its end.
final class OutputWriter: Sendable {
    /// The last bytes of both streams, which an error shows.
    static let shownTail = 4 << 10

    private struct State {
        var head: OutputLog.Head
        var file: OpenFile?
        /// Whether the file has a head, without which readers find nothing.
        var isBegun = false
        /// One for each unit.
        var leases: [Lease] = []
        /// The bits and bytes of the last group, which the next byte of output may continue.
        var group: [UInt8] = []
        var tail: [UInt8] = []
    }

    private let transfer: Transfer
    private let state: Mutex<State>

    init(limit: Int, _ transfer: Transfer) {
        self.transfer = transfer
        state = Mutex(State(head: OutputLog.Head(limit: limit)))
    }

    /// The bytes that the log takes on the disk.
    var space: Int64 { state.withLock { Int64($0.leases.count) * $0.head.unitSpace } }

    /// The bytes of output so far, of both streams.
    var size: Int64 { state.withLock { Int64($0.head.size + $0.head.dropped) } }

    /// The bytes of output that were dropped without a file that tells so.
    var untold: Int64 { state.withLock { $0.isBegun ? 0 : Int64($0.head.dropped) } }

    var tail: String {
        let tail = state.withLock(\.tail)
        // It may begin in the middle of a character.
        let start = tail.count < Self.shownTail ? 0 : tail.prefix(3).prefix { $0 & 0xC0 == 0x80 }.count
        return String(decoding: tail[start...], as: UTF8.self)
    }

    var reader: OutputReader<Errno>? { state.withLock(\.file).map { OutputReader($0.descriptor, transfer.files) } }

    /// Appends output. Blocks.
    func append(_ chunks: [PipeReader.Chunk]) {
        state.withLock { state in
            for chunk in chunks {
                guard let stream = OutputLog.Stream(rawValue: chunk.pipe) else { continue }
                chunk.bytes.withUnsafeReadableBytes { append($0, stream, &state) }
            }
        }
    }

    private func append(_ bytes: UnsafeRawBufferPointer, _ stream: OutputLog.Stream, _ state: inout State) {
        state.tail += bytes.suffix(Self.shownTail)
        if state.tail.count > Self.shownTail { state.tail.removeFirst(state.tail.count - Self.shownTail) }
        var rest = bytes[...]
        do throws(Errno) {
            // Once output was dropped, the rest is too, so that what is kept has no further gap.
            while !rest.isEmpty, state.head.dropped == 0, try hasRoom(&state) {
                rest = rest.dropFirst(try write(rest, stream, &state))
            }
        } catch {
            // Nothing more is written, so this is logged once.
            transfer.shared.logger.warning(
                "Output of a program is dropped, as its log cannot be written.",
                metadata: ["job": "\(transfer.context.job)", "error": "\(error)"])
        }
        guard !rest.isEmpty else { return }
        state.head.dropped += UInt64(rest.count)
        // Without a head, the result of the job tells the count.
        if state.file != nil { try? writeHead(&state) }
    }

    /// Whether there is a place for the next byte, or the user's quota and the disk have room for another unit.
    private func hasRoom(_ state: inout State) throws(Errno) -> Bool {
        let place = state.head.place(of: Int64(state.head.size)).place
        if place / state.head.unit < state.leases.count { return true }
        let (context, files) = (transfer.context, transfer.files)
        if state.file == nil {
            let (directory, name) = try files.directory(of: context.logPath, context.bodyDirectory)
            let file = try files.openBeneath(
                directory.descriptor, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600)
            state.file = OpenFile(file, files, closedOn: transfer.ownFiles)
        }
        let size = state.head.unitSpace
        let minimum = Int64(transfer.settings.downloads.minimumFree)
        if let free = files.freeBytes(state.file?.descriptor ?? -1), free.saturatingSubtracting(size) < minimum {
            return false
        }
        guard let lease = try? transfer.spillLease(size, for: "output") else { return false }
        state.leases.append(lease)
        return true
    }

    /// Writes bytes up to the end of a unit; returns their number.
    private func write(
        _ bytes: Slice<UnsafeRawBufferPointer>, _ stream: OutputLog.Stream, _ state: inout State
    ) throws(Errno) -> Int {
        let (place, room) = state.head.place(of: Int64(state.head.size))
        var group = place % 8 == 0 ? [] : state.group
        var rest = bytes.prefix(room)
        while !rest.isEmpty {
            if group.count % 9 == 0 { group.append(0) }
            let known = group.count % 9 - 1
            let next = rest.prefix(8 - known)
            if stream == .err { group[group.count / 9 * 9] |= UInt8(((1 << next.count) - 1) << known) }
            group += next
            rest = rest.dropFirst(next.count)
        }
        try transfer.files.write(
            group, to: state.file?.descriptor ?? -1, at: OutputLog.Head.position(ofGroupAt: place))
        // Readers look for the bytes once the head counts them.
        let (count, before) = (min(room, bytes.count), state.head)
        state.head.size += UInt64(count)
        do throws(Errno) { try writeHead(&state) } catch {
            state.head = before
            throw error
        }
        state.group = Array(group.suffix(group.count % 9))
        return count
    }

    private func writeHead(_ state: inout State) throws(Errno) {
        let file = state.file?.descriptor ?? -1
        try withUnsafeBytes(of: state.head) { (bytes) throws(Errno) in
            try transfer.files.writeAt(file, 0, bytes)
        }
        state.isBegun = true
    }
}
