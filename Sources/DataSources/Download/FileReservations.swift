import JobModel
import Synchronization

/// The files that downloads of this daemon write now or go on with later, so that no two write the same one.
///
/// The second one is refused (kind `exists`), as only the author of the jobs can say which of two different files
/// should win; with `exists: "rename"` it gets the next name instead. There is at most one entry for each running
/// download, and for so many that wait for a retry, which goes on with the `.part` that is there.
///
/// Files are known by their paths (``DownloadPath/key(_:)``): two paths that a mount makes the same file are not told apart
/// here, and then the check of ``ScratchFile/rename(to:replacing:)`` refuses one.
final class FileReservations: Sendable {
    /// Who writes a file.
    struct Writer: Sendable, Hashable {
        let job: JobID
        let owner: UInt32
        let link: Int
    }

    /// The most that wait for a retry, or to go on; what more do can lose their `.part` to another job.
    static let mostWaiting = 10_000

    private struct State {
        var writers: [String: Writer] = [:]
        /// The files of jobs that go on later, and the attempts that left them, 0 where an earlier daemon did.
        var waiting: [JobID: (path: String, attempt: Int)] = [:]

        mutating func endWaiting(of job: JobID) {
            if let (path, _) = waiting.removeValue(forKey: job) { writers[path] = nil }
        }
    }

    private let state = Mutex(State())

    /// Reserves a file; where another job has it, that is returned.
    func reserve(_ path: String, for writer: Writer) -> Writer? {
        state.withLock { state in
            if state.waiting[writer.job]?.path == path { state.endWaiting(of: writer.job) }
            if let present = state.writers[path] { return present }
            state.writers[path] = writer
            return nil
        }
    }

    func release(_ path: String) { state.withLock { $0.writers[path] = nil } }

    /// Keeps a file for the next attempt of its job, unless another job has it.
    func keep(_ path: String, for writer: Writer, after attempt: Int = 0) {
        state.withLock { state in
            guard state.writers[path] == nil || state.writers[path] == writer else { return }
            state.endWaiting(of: writer.job)
            let hasRoom = state.waiting.count < Self.mostWaiting
            state.writers[path] = hasRoom ? writer : nil
            if hasRoom { state.waiting[writer.job] = (path, attempt) }
        }
    }

    /// Another job that is to go on with a file.
    func waiting(for path: String, besides job: JobID) -> Writer? {
        state.withLock { state in
            guard let writer = state.writers[path], writer.job != job, state.waiting[writer.job]?.path == path else {
                return nil
            }
            return writer
        }
    }

    /// Ends what was kept for a job by an attempt before `attempt`.
    func endWaiting(of job: JobID, before attempt: Int = .max) {
        state.withLock { state in
            if let waiting = state.waiting[job], waiting.attempt < attempt { state.endWaiting(of: job) }
        }
    }

    /// Whether a download writes into a directory or below it.
    func uses(_ directory: String) -> Bool {
        state.withLock { $0.writers.keys.contains { $0.hasPrefix(directory + "/") } }
    }
}
