import DeferredKit
import JobModel
import Synchronization

/// The files that downloads write now, so that no two of them write the same one.
///
/// The second download is refused (kind `exists`); with `exists: "rename"` it gets the next free name. Files are known
/// by their paths (``DownloadPath/key(_:)-(String)``). If a mount gives a file two paths,
/// ``DownloadTarget/finish(as:replacing:)`` refuses one of them.
final class FileReservations: Sendable {
    struct Writer: Sendable {
        let job: JobID
        let owner: UInt32
    }

    private let writers = Mutex<[String: (writer: Writer, end: Promise<Void, Never>)]>([:])

    /// Reserves a file; if another download has it, returns that one.
    func reserve(_ path: String, for writer: Writer) -> Writer? {
        writers.withLock { writers in
            if let present = writers[path] { return present.writer }
            writers[path] = (writer, Promise())
            return nil
        }
    }

    func release(_ path: String) { writers.withLock { $0.removeValue(forKey: path) }?.end.succeed(()) }

    /// The end of a download of `job` to a file below a directory; nil if there is none.
    func end(of job: JobID, below directory: String) -> Deferred<Void, Never>? {
        writers.withLock { writers in
            writers.first { $0.value.writer.job == job && $0.key.hasPrefix(directory) }?.value.end.deferred
        }
    }
}

extension JobError {
    /// Another job writes to `path`, or will in its retry. The message does not reveal the id of another user's job.
    init(beingWritten path: String, by other: FileReservations.Writer, to user: UInt32) {
        let state = other.owner == user ? "downloaded by job \(other.job)" : "written by another job"
        self.init(.exists, "\"\(path)\" is being \(state); wait for that job, or give another path.")
    }
}
