import JobModel
import Synchronization

/// The files that downloads of this daemon are writing now, so that no two write the same one.
///
/// Whoever comes second is refused (kind `exists`), as only the author of the jobs can say which of two different files
/// should win; with `exists: "rename"` it gets the next name instead. There is at most one entry for each running
/// download.
final class FileReservations: Sendable {
    struct Key: Sendable, Hashable {
        let directory: FileOperations.Status.Identity
        let name: String
    }

    /// Who writes a file.
    struct Writer: Sendable, Hashable {
        let job: JobID
        let owner: UInt32
    }

    private let writers = Mutex<[Key: Writer]>([:])

    /// Reserves `key`; where another job writes that file, it is returned.
    func reserve(_ key: Key, for writer: Writer) -> Writer? {
        writers.withLock { writers in
            if let present = writers[key] { return present }
            writers[key] = writer
            return nil
        }
    }

    func release(_ key: Key) {
        writers.withLock { $0[key] = nil }
    }

    /// Releases `key` and, where nobody else writes into that directory, runs `body` before anybody can begin to.
    func release(_ key: Key, thenIfDirectoryIsUnused body: () -> Void) {
        writers.withLock { writers in
            writers[key] = nil
            if !writers.keys.contains(where: { $0.directory == key.directory }) { body() }
        }
    }
}
