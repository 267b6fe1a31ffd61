import JobModel
import Synchronization

/// The files that downloads write now or resume later, so that no two downloads write the same one.
///
/// The second download is refused (kind `exists`); with `exists: "rename"` it gets the next free name. Files are known
/// by their paths (``DownloadPath/key(_:)-(String)``). If a mount gives a file two paths,
/// ``DownloadTarget/finish(as:replacing:)`` refuses one of them.
final class FileReservations: Sendable {
    struct Writer: Sendable, Hashable {
        let job: JobID
        let owner: UInt32
        let link: Int
    }

    /// Beyond so many files, none is kept for a job that runs again later, so another job can remove its `.part`.
    static let mostWaiting = 10_000

    /// The writers by path, and whether each runs again later.
    private let writers = Mutex<[String: (writer: Writer, isWaiting: Bool)]>([:])

    /// Reserves a file; if another job has it, returns that job.
    func reserve(_ path: String, for writer: Writer) -> Writer? {
        writers.withLock { writers in
            if let (present, isWaiting) = writers[path], !isWaiting || present.job != writer.job { return present }
            writers[path] = (writer, false)
            return nil
        }
    }

    func release(_ path: String) { writers.withLock { $0[path] = nil } }

    /// Keeps a file for the next attempt of its job, unless another job has it.
    func keep(_ path: String, for writer: Writer) {
        writers.withLock { writers in
            guard writers[path].map({ $0.writer == writer }) ?? true else { return }
            writers[path] = writers.count <= Self.mostWaiting ? (writer, true) : nil
        }
    }

    /// The other job for which a file is kept.
    func waiting(for path: String, besides job: JobID) -> Writer? {
        writers.withLock { $0[path].flatMap { $0.isWaiting && $0.writer.job != job ? $0.writer : nil } }
    }

    /// Frees a file that is kept for a job.
    func endWaiting(for path: String, of job: JobID) {
        writers.withLock { writers in
            if let (writer, isWaiting) = writers[path], isWaiting, writer.job == job { writers[path] = nil }
        }
    }
}
