import Dispatch
import JobModel
import Synchronization

/// The files that downloads of this daemon are writing now, so that no two write the same one.
///
/// Whoever comes second is refused (kind `exists`), as only the author of the jobs can say which of two different files
/// should win; with `exists: "rename"` it gets the next name instead. There is at most one entry for each running
/// download, and for so many that wait for a retry, which goes on with the `.part` that is there.
///
/// Those that an earlier daemon left unfinished are known by path until they run: their directories may be slow to open,
/// which the daemon's start does not wait for.
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

    /// A link of a job that goes on with the file that it began under an earlier daemon.
    struct Unfinished: Sendable, Hashable {
        let writer: Writer
        let link: Int
    }

    /// The most that wait for a retry, or to go on; what more do can lose their `.part` to another job.
    static let mostWaiting = 10_000

    private struct State {
        var writers: [Key: Writer] = [:]
        /// The files of jobs that wait for a retry, and which attempt left them.
        var waiting: [JobID: (key: Key, attempt: Int)] = [:]

        /// Directories that nobody writes into and that are being removed, with the threads that wait for that to end.
        var beingRemoved: [FileOperations.Status.Identity: [DispatchSemaphore]] = [:]

        /// By absolute path, and the path of each job.
        var unfinished: [String: Unfinished] = [:]
        var unfinishedPaths: [JobID: String] = [:]

        mutating func endUnfinished(of job: JobID) {
            guard let path = unfinishedPaths.removeValue(forKey: job) else { return }
            unfinished[path] = nil
        }

        /// What tells that the directory is not being removed any more; nil where it is not.
        mutating func wait(forRemovalOf directory: FileOperations.Status.Identity) -> DispatchSemaphore? {
            guard beingRemoved[directory] != nil else { return nil }
            let semaphore = DispatchSemaphore(value: 0)
            beingRemoved[directory]?.append(semaphore)
            return semaphore
        }

        mutating func endWaiting(of job: JobID) {
            guard let (key, _) = waiting.removeValue(forKey: job), writers[key]?.job == job else { return }
            writers[key] = nil
        }
    }

    private let state = Mutex(State())

    /// Reserves `key`; where another job writes that file, it is returned. Blocks while somebody removes the directory.
    func reserve(_ key: Key, for writer: Writer) -> Writer? {
        while true {
            let (present, removal) = state.withLock { state -> (Writer?, DispatchSemaphore?) in
                if let removal = state.wait(forRemovalOf: key.directory) { return (nil, removal) }
                if state.waiting[writer.job]?.key == key { state.endWaiting(of: writer.job) }
                // From here on its directory is known.
                state.endUnfinished(of: writer.job)
                if let present = state.writers[key] { return (present, nil) }
                state.writers[key] = writer
                return (nil, nil)
            }
            guard let removal else { return present }
            removal.wait()
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

    /// Keeps the file at `path` for a job that an earlier daemon did not finish.
    func keep(_ path: String, forUnfinished unfinished: Unfinished) {
        state.withLock { state in
            let job = unfinished.writer.job
            guard state.unfinished.count < Self.mostWaiting, state.unfinished[path] == nil,
                state.unfinishedPaths[job] == nil
            else { return }
            state.unfinished[path] = unfinished
            state.unfinishedPaths[job] = path
        }
    }

    /// The job of an earlier daemon that is to go on with the file at `path`, unless that is `job`.
    func unfinished(at path: String, besides job: JobID) -> Unfinished? {
        state.withLock { state in state.unfinished[path].flatMap { $0.writer.job == job ? nil : $0 } }
    }

    /// Ends what was kept for a job, by an earlier daemon or where an attempt before `attempt` did.
    func endWaiting(of job: JobID, before attempt: Int = .max) {
        state.withLock { state in
            state.endUnfinished(of: job)
            if let waiting = state.waiting[job], waiting.attempt < attempt { state.endWaiting(of: job) }
        }
    }

    /// Runs `body` where nobody writes into that directory, before anybody can begin to. Blocks as `body` does, and nobody but
    /// who wants that very directory.
    func ifUnused(_ directory: FileOperations.Status.Identity, _ body: () -> Void) {
        let isUnused = state.withLock { state in
            guard state.beingRemoved[directory] == nil,
                !state.writers.keys.contains(where: { $0.directory == directory })
            else { return false }
            state.beingRemoved[directory] = []
            return true
        }
        guard isUnused else { return }
        body()
        for waiting in state.withLock({ $0.beingRemoved.removeValue(forKey: directory) ?? [] }) { waiting.signal() }
    }
}
