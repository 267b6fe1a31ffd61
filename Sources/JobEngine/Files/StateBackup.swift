import DataSources
import Dispatch
import Glibc
package import JobModel
import SystemPackage

/// A copy of the state at one moment, in a file without a name: the kernel removes it with its last descriptor, however the
/// process ends.
package struct StateBackup: Sendable {
    /// Its size in bytes.
    package let size: Int
    private let file: OpenFile

    /// Takes over the file at `path` and removes its name.
    fileprivate init(takingOver path: String) throws(StoreError) {
        do {
            file = OpenFile(
                try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .noFollow]).rawValue, .real)
            unlink(path)
            size = Int(try FileOperations.real.statusOfOpen(file.descriptor).size)
        } catch {
            throw StoreError(.read, "The backup \(path) cannot be read (\(error)); make another one.")
        }
    }

    /// At most `length` bytes from `offset` on. Blocks.
    package func read(offset: Int, length: Int) throws(ProtocolError) -> ResultPart {
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
    /// Copies the state while jobs run, one copy after the other.
    package func backUp() async throws(StoreError) -> StateBackup {
        let result: Result<StateBackup, StoreError> = await withCheckedContinuation { continuation in
            // Not on a thread for files, as a copy takes long.
            backups.async { [blobs, reader] in
                // Otherwise, a file that the copied rows name could be removed before it is copied.
                let copy = blobs.keepingAll {
                    Result { () throws(StoreError) in try StateBackup(takingOver: reader.copyState()) }
                }
                continuation.resume(returning: copy)
            }
        }
        return try result.get()
    }
}
