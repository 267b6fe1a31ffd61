import DataSources
import Dispatch
import Glibc
package import JobModel
import Synchronization
import SystemPackage

/// A copy of the state at one moment, in a file without a name: the kernel removes it with its last descriptor, however the
/// process ends.
package final class StateBackup: Sendable {
    /// How many seconds a backup may stay unread if another one is requested. It takes room on the disk until then.
    private static let longestPause: UInt64 = 60

    /// Its size in bytes.
    package let size: Int
    /// The file, nil once the backup was given up, and the time of the last read.
    private let state: Mutex<(file: OpenFile?, lastRead: UInt64)>

    /// Takes over the file at `path` and removes its name.
    fileprivate init(takingOver path: String, at now: UInt64) throws(StoreError) {
        do {
            let file = OpenFile(
                try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .noFollow]).rawValue, .real)
            unlink(path)
            size = Int(try FileOperations.real.statusOfOpen(file.descriptor).size)
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
            if now >= state.lastRead.addingReportingOverflow(Self.longestPause * 1_000_000_000).partialValue {
                state.file = nil
            }
            return state.file == nil
        }
    }

    /// At most `length` bytes from `offset` on. Blocks.
    package func read(offset: Int, length: Int) throws(ProtocolError) -> ResultPart {
        let file = state.withLock { state in
            state.lastRead = DispatchTime.now().uptimeNanoseconds
            return state.file
        }
        guard let file else {
            throw ProtocolError(
                .notFound,
                "The backup was given up, as it was not read for \(Self.longestPause) seconds and another one was asked for; "
                    + "call server.backup without an offset to make one.")
        }
        do throws(Errno) {
            return try ResultPart(of: size, offset: offset, length: length) { (count, offset) throws(Errno) in
                try FileOperations.real.read(count, from: file.descriptor, at: offset)
            }
        } catch {
            throw ProtocolError(.storage, "The backup cannot be read: \(error); make another one.")
        }
    }
}

extension Engine {
    /// Copies the state while jobs run, one copy at a time; throws a ``ProtocolError`` while there is another one.
    package func backUp(at now: UInt64 = DispatchTime.now().uptimeNanoseconds) async throws -> StateBackup {
        let mayBegin = backups.withLock { state in
            guard !state.isMaking, state.latest?.isOver(at: now) ?? true else { return false }
            state.isMaking = true
            return true
        }
        guard mayBegin else {
            throw ProtocolError.busy("Another backup is being made; wait for that to end.", retryAfter: 60)
        }
        let result: Result<StateBackup, StoreError> = await withCheckedContinuation { continuation in
            // Not on a thread for files, as a copy takes long.
            DispatchQueue.global(qos: .utility).async { [blobs, reader] in
                // Otherwise, a file that the copied rows name could be removed before it is copied.
                let copy = blobs.keepingAll {
                    Result { () throws(StoreError) in try StateBackup(takingOver: reader.copyState(), at: now) }
                }
                continuation.resume(returning: copy)
            }
        }
        backups.withLock { $0 = (false, try? result.get()) }
        return try result.get()
    }
}
