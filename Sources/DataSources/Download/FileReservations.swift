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

    /// The most files kept for jobs that run again later; further jobs can lose their `.part` to another job.
    static let mostWaiting = 10_000

    private struct State {
        var writers: [String: Writer] = [:]
        /// The files of jobs that run again later.
        var waiting: [JobID: String] = [:]

        mutating func endWaiting(of job: JobID) {
            if let path = waiting.removeValue(forKey: job) { writers[path] = nil }
        }
    }

    private let state = Mutex(State())

    /// Reserves a file; if another job has it, returns that job.
    func reserve(_ path: String, for writer: Writer) -> Writer? {
        state.withLock { state in
            if state.waiting[writer.job] == path { state.endWaiting(of: writer.job) }
            if let present = state.writers[path] { return present }
            state.writers[path] = writer
            return nil
        }
    }

    func release(_ path: String) { state.withLock { $0.writers[path] = nil } }

    /// Keeps a file for the next attempt of its job, unless another job has it.
    func keep(_ path: String, for writer: Writer) {
        state.withLock { state in
            guard state.writers[path] == nil || state.writers[path] == writer else { return }
            state.endWaiting(of: writer.job)
            let hasRoom = state.waiting.count < Self.mostWaiting
            state.writers[path] = hasRoom ? writer : nil
            if hasRoom { state.waiting[writer.job] = path }
        }
    }

    /// The other job for which a file is kept.
    func waiting(for path: String, besides job: JobID) -> Writer? {
        state.withLock { state in
            state.writers[path].flatMap { $0.job != job && state.waiting[$0.job] == path ? $0 : nil }
        }
    }

    /// Frees the file that is kept for a job.
    func endWaiting(of job: JobID) { state.withLock { $0.endWaiting(of: job) } }
}
