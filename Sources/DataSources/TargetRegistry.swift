import JobModel
import Synchronization

/// The files that downloads of this daemon are writing now, so that no two write the same one.
///
/// Whoever comes second is refused (kind `exists`), as which of two different files wins is the jobs' author's to say;
/// only `exists: "rename"` takes the next name. At most one entry for each running download.
final class TargetRegistry: Sendable {
    struct Key: Sendable, Hashable {
        let folder: FileOperations.Status.Identity
        let name: String
    }

    private let holders = Mutex<[Key: JobID]>([:])

    /// Reserves `key`; where another job holds it, that job is returned.
    func reserve(_ key: Key, for job: JobID) -> JobID? {
        holders.withLock { holders in
            if let holder = holders[key] { return holder }
            holders[key] = job
            return nil
        }
    }

    func release(_ key: Key) {
        holders.withLock { $0[key] = nil }
    }

    /// Releases `key` and, where nobody else writes into that folder, runs `body` before anybody can begin to.
    func release(_ key: Key, thenIfFolderIsUnused body: () -> Void) {
        holders.withLock { holders in
            holders[key] = nil
            if !holders.keys.contains(where: { $0.folder == key.folder }) { body() }
        }
    }
}
