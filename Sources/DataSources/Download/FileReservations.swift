import JobModel
import Synchronization

/// The files that downloads of this daemon are writing now, so that no two write the same one.
///
/// Whoever comes second is refused (kind `exists`), as only the author of the jobs can say which of two different files
/// should win; with `exists: "rename"` it gets the next name instead. There is at most one entry for each running
/// download, and for so many that wait for a retry, which goes on with the `.part` that is there.
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

    /// The most that wait for a retry; what more do can lose their `.part` to another job.
    private static let mostWaiting = 10_000

    private struct State {
        var writers: [Key: Writer] = [:]
        /// The files of jobs that wait for a retry, and which attempt left them.
        var waiting: [JobID: (key: Key, attempt: Int)] = [:]

        mutating func endWaiting(of job: JobID) {
            guard let (key, _) = waiting.removeValue(forKey: job), writers[key]?.job == job else { return }
            writers[key] = nil
        }
    }

    private let state = Mutex(State())

    /// Reserves `key`; where another job writes that file, it is returned.
    func reserve(_ key: Key, for writer: Writer) -> Writer? {
        state.withLock { state in
            if state.waiting[writer.job]?.key == key { state.endWaiting(of: writer.job) }
            if let present = state.writers[key] { return present }
            state.writers[key] = writer
            return nil
        }
    }

    func release(_ key: Key) {
        state.withLock { $0.writers[key] = nil }
    }

    /// Keeps `key` for the next attempt of its job.
    func keep(_ key: Key, after attempt: Int) {
        state.withLock { state in
            guard let writer = state.writers[key] else { return }
            state.endWaiting(of: writer.job)
            if state.waiting.count < Self.mostWaiting {
                state.waiting[writer.job] = (key, attempt)
                state.writers[key] = writer
            } else {
                state.writers[key] = nil
            }
        }
    }

    /// Ends what was kept for a job, where an attempt before `attempt` did.
    func endWaiting(of job: JobID, before attempt: Int = .max) {
        state.withLock { state in
            if let waiting = state.waiting[job], waiting.attempt < attempt { state.endWaiting(of: job) }
        }
    }

    /// Releases `key` and, where nobody else writes into that directory, runs `body` before anybody can begin to.
    func release(_ key: Key, thenIfDirectoryIsUnused body: () -> Void) {
        state.withLock { state in
            state.writers[key] = nil
            if !state.writers.keys.contains(where: { $0.directory == key.directory }) { body() }
        }
    }
}
