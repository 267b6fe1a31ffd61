import JobModel
import Synchronization

/// The files that downloads write now, so that no two downloads write the same one.
///
/// The second download is refused (kind `exists`); with `exists: "rename"` it gets the next free name. Files are known
/// by their paths (``DownloadPath/key(_:)-(String)``). If a mount gives a file two paths,
/// ``DownloadTarget/finish(as:replacing:)`` refuses one of them.
final class FileReservations: Sendable {
    struct Writer: Sendable, Hashable {
        let job: JobID
        let owner: UInt32
    }

    private let writers = Mutex<[String: Writer]>([:])

    /// Reserves a file; if another job has it, returns that job.
    func reserve(_ path: String, for writer: Writer) -> Writer? {
        writers.withLock { writers in
            if let present = writers[path] { return present }
            writers[path] = writer
            return nil
        }
    }

    func release(_ path: String) { writers.withLock { $0[path] = nil } }
}
