import Dispatch
import Glibc
package import JobModel
import Synchronization
package import SystemPackage
import DataSources

/// A copy of the state at one moment, in a file without a name: the kernel removes it with its last descriptor, however the
/// process ends.
package final class StateBackup: Sendable {
    package enum Failure: Error, Equatable {
        /// It was not read for too long, and another backup was requested.
        case givenUp
        case unreadable(Errno)
    }

    private final class File: Sendable {
        let descriptor: FileDescriptor

        init(_ descriptor: FileDescriptor) { self.descriptor = descriptor }

        deinit { try? descriptor.close() }
    }

    /// How long a backup may stay unread if another one is requested: 60 s. It takes room on the disk until then.
    package static let longestPause: UInt64 = 60_000_000_000

    /// Its size in bytes.
    package let size: Int
    /// The file, nil once the backup was given up, and the time of the last read.
    private let state: Mutex<(file: File?, lastRead: UInt64)>

    /// Takes over the file at `path` and removes its name.
    init(takingOver path: String, at now: UInt64) throws(StoreError) {
        do {
            let file = File(try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .noFollow]))
            unlink(path)
            size = Int(try file.descriptor.seek(offset: 0, from: .end))
            state = Mutex((file, now))
        } catch {
            throw StoreError(.read, "The backup \(path) cannot be read (\(error)); make another one.")
        }
    }

    /// Gives the backup up, as its client needs it no more; a read that has not returned yet may still hold it.
    package func end() {
        state.withLock { $0.file = nil }
    }

    /// Whether another backup may be made. Gives this one up if it was not read for too long.
    fileprivate func isOver(at now: UInt64) -> Bool {
        state.withLock { state in
            if now >= state.lastRead.addingReportingOverflow(Self.longestPause).partialValue { state.file = nil }
            return state.file == nil
        }
    }

    /// At most `length` bytes from `offset` on. Blocks.
    fileprivate func read(offset: Int, length: Int) throws(Failure) -> ResultPart {
        let file = state.withLock { state in
            state.lastRead = DispatchTime.now().uptimeNanoseconds
            return state.file
        }
        guard let file else { throw .givenUp }
        do throws(Errno) {
            return try ResultPart(
                of: file.descriptor.rawValue, size: size, offset: offset, length: length, by: .real)
        } catch {
            throw .unreadable(error)
        }
    }
}

/// Makes backups, one at a time.
final class Backups: Sendable {
    private struct State {
        var isMaking = false
        /// Nil once its client has released it.
        weak var latest: StateBackup?
    }

    private let state = Mutex(State())
    /// Not a thread for files, as a copy takes long.
    private let queue = DispatchQueue(label: "deferd.backup", qos: .utility)

    fileprivate func make(
        at now: UInt64, _ copy: @escaping @Sendable () throws(StoreError) -> String
    ) async throws(StoreError) -> StateBackup {
        let mayBegin = state.withLock { state in
            guard !state.isMaking, state.latest?.isOver(at: now) ?? true else { return false }
            state.isMaking = true
            return true
        }
        guard mayBegin else { throw StoreError(.locked, "Another backup is being made; wait for that to end.") }
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<StateBackup, StoreError>, Never>) in
            queue.async {
                continuation.resume(
                    returning: Result { () throws(StoreError) in try StateBackup(takingOver: copy(), at: now) })
            }
        }
        state.withLock { $0 = State(latest: try? result.get()) }
        return try result.get()
    }
}

extension Engine {
    /// Copies the state while jobs run.
    package func backUp(
        at now: UInt64 = DispatchTime.now().uptimeNanoseconds
    ) async throws(StoreError) -> StateBackup {
        try await backups.make(at: now) { [blobs, reader] () throws(StoreError) in
            // Otherwise, a file that the copied rows name could be removed before it is copied.
            blobs.hold()
            defer { blobs.release() }
            return try reader.copyState()
        }
    }

    /// A part of a backup, for `owner`.
    package func read(
        _ backup: StateBackup, offset: Int, length: Int, for owner: UInt32
    ) async throws(StateBackup.Failure) -> ResultPart {
        try await blocking(for: owner) { () throws(StateBackup.Failure) in
            try backup.read(offset: offset, length: length)
        }
    }
}
