package import DeferredKit
import JobCore
package import JobModel
import Synchronization

/// The progress of running jobs, for everything that shows jobs.
///
/// Progress is never stored, and no round waits for it. A list counts what its children have done.
package final class Board: Sendable {
    fileprivate struct State {
        var runs: [JobID: RunProgress] = [:]
        var lists: [JobID: (row: ListRow, rate: RateMeter)] = [:]
        /// The jobs whose runs or lists other nodes have reported.
        var heard: Set<JobID> = []
        /// The parents of running children, and the running children of each parent.
        var parents: [JobID: JobID] = [:]
        var children: [JobID: Set<JobID>] = [:]
        /// The number of changes of lists.
        var listChanges = 0
        /// The clients that wait until the program of a job has written more than `size` bytes, or a run of the job begins or
        /// ends.
        var readers: [JobID: [ObjectIdentifier: (size: Int64, promise: Promise<Void, Never>)]] = [:]
    }

    private let state = Mutex(State())

    /// The progress of a job; nil if the job is not running or has reported nothing.
    package func progress(of job: JobID) -> Progress? { state.withLock { $0.progress(of: job) } }

    func begin(_ progress: RunProgress, of row: JobRow) {
        state.withLock { state in
            state.forgetHeard(row.id)
            state.runs[row.id] = progress
            guard let parent = row.parent else { return }
            state.parents[row.id] = parent.job
            state.children[parent.job, default: []].insert(row.id)
        }
        wakeReaders(of: row.id)
    }

    /// Removes a run that is over.
    func end(_ progress: RunProgress) {
        state.withLock { state in
            guard state.runs[progress.job] === progress else { return }
            state.runs[progress.job] = nil
            if state.lists[progress.job] == nil { state.remove(progress.job) }
        }
        wakeReaders(of: progress.job)
    }

    /// Stores the present row of a job's list; nil removes the list.
    func put(_ list: ListRow?, of job: JobID) {
        state.withLock { state in
            state.forgetHeard(job)
            if let list { return state.put(list) }
            state.lists[job] = nil
            if state.runs[job] == nil { state.remove(job) }
        }
    }

    // MARK: - Other nodes

    /// A run at another node, as it is known already, or else the `new` one.
    func elsewhere(_ new: RunProgress) -> RunProgress {
        state.withLock { state in
            if let known = state.runs[new.job] {
                guard state.heard.contains(new.job) else { return new }
                if known.run >= new.run { return known }
            } else {
                state.makeRoom(for: new.job)
            }
            state.runs[new.job] = new
            return new
        }
    }

    /// Stores a list as another node has it, unless more of it has ended as far as this one knows.
    func hear(_ list: ListRow) {
        state.withLock { state in
            if let known = state.lists[list.job]?.row, (known.id, known.ended) >= (list.id, list.ended) { return }
            guard state.runs[list.job] == nil || state.heard.contains(list.job) else { return }
            if state.lists[list.job] == nil { state.makeRoom(for: list.job) }
            state.put(list)
        }
    }

    /// Forgets what other nodes have told of jobs that have changed since, or of all, as some of these nodes may be gone.
    func forget(_ jobs: [JobID], all: Bool) {
        state.withLock { state in
            if all { for job in state.heard { state.remove(job) } }
            for job in jobs where state.runs[job] == nil || state.heard.contains(job) { state.remove(job) }
        }
        for job in jobs { wakeReaders(of: job) }
    }

    /// Whether what it has of a job can be shown while the job's row names this run.
    package func isAbout(_ run: RunID?, of job: JobID) -> Bool {
        state.withLock { state in
            guard state.heard.contains(job), let heard = state.runs[job], state.lists[job] == nil else { return true }
            return heard.run == run
        }
    }

    /// The running sources of each owner in each queue.
    package var slots: [String: [UInt32: Int]] {
        state.withLock { state in
            state.runs.values.reduce(into: [:]) { slots, run in
                if !state.heard.contains(run.job) { slots[run.queue, default: [:]][run.owner, default: 0] += 1 }
            }
        }
    }

    // MARK: - Output of programs

    /// The run of the program that a job runs; nil if it runs none.
    package func program(of job: JobID) -> RunProgress? {
        state.withLock { $0.runs[job] }.flatMap { $0.isProgram ? $0 : nil }
    }

    /// Resolves `promise` when the program of the job has written more than `size` bytes, or a run of the job begins or ends.
    package func awaitOutput(of job: JobID, beyond size: Int64, _ promise: Promise<Void, Never>) {
        let id = ObjectIdentifier(promise.deferred)
        state.withLock { $0.readers[job, default: [:]][id] = (size, promise) }
        promise.deferred.upon { [weak self] _ in
            self?.state.withLock { state in
                state.readers[job]?[id] = nil
                if state.readers[job]?.isEmpty == true { state.readers[job] = nil }
            }
        }
    }

    /// Wakes the clients that wait for a program to have written as much.
    func wakeReaders(of job: JobID, at size: Int64 = .max) {
        let woken = state.withLock { $0.readers[job]?.values.filter { $0.size < size } ?? [] }
        for reader in woken { reader.promise.succeed(()) }
    }

    // MARK: - News

    /// Whether there are runs, and the number of changes of lists: without either, no progress changes.
    var activity: (hasRuns: Bool, listChanges: Int) {
        state.withLock { (!$0.runs.isEmpty, $0.listChanges) }
    }

    /// The present progress of each job with a run or a list.
    func present() -> [JobID: JobProgress] {
        state.withLock { state in
            Set(state.runs.keys).union(state.lists.keys).reduce(into: [:]) {
                $0[$1] = JobProgress(state.progress(of: $1), state.runs[$1])
            }
        }
    }
}

extension Board.State {
    /// Jobs of other nodes that are kept. News of a job that come after its end would stay for good.
    private static let mostHeard = 10_000

    /// Makes room for what another node tells of a job.
    fileprivate mutating func makeRoom(for job: JobID) {
        if heard.count >= Self.mostHeard { for job in heard { remove(job) } }
        heard.insert(job)
    }

    fileprivate mutating func forgetHeard(_ job: JobID) { if heard.contains(job) { remove(job) } }

    fileprivate mutating func put(_ list: ListRow) {
        let rate = lists[list.job].flatMap { $0.row.id == list.id ? $0.rate : nil }
        lists[list.job] = (list, rate ?? RateMeter())
        listChanges += 1
    }

    fileprivate mutating func remove(_ job: JobID) {
        heard.remove(job)
        runs[job] = nil
        lists[job] = nil
        guard let parent = parents.removeValue(forKey: job) else { return }
        children[parent]?.remove(job)
        if children[parent]?.isEmpty == true { children[parent] = nil }
    }

    /// The progress of a list is in bytes if any child counts bytes, else in finished children.
    fileprivate mutating func progress(of job: JobID) -> Progress? {
        guard let list = lists[job]?.row else { return runs[job]?.snapshot.latest }
        let running = children[job] ?? []
        var bytes = list.bytes
        var total: Int64? = running.count < list.total - list.ended ? nil : bytes
        var countsBytes = bytes > 0
        for child in running {
            guard let progress = progress(of: child), progress.unit == .bytes else {
                total = nil
                continue
            }
            countsBytes = true
            bytes = bytes.saturatingAdding(progress.completed)
            total = total.flatMap { sum in progress.total.map { sum.saturatingAdding($0) } }
        }
        var sum =
            countsBytes
            ? Progress(completed: bytes, total: total)
            : Progress(completed: Int64(list.ended), total: Int64(list.total), unit: .jobs)
        sum.rate = lists[job]?.rate.measure(sum.completed)
        return sum
    }
}
