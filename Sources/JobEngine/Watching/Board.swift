package import DeferredKit
import JobCore
package import JobModel
import Synchronization

/// The progress of running jobs, for everything that shows jobs.
///
/// Progress is never stored, and no round waits for it. A list counts what its children have done.
package final class Board: Sendable {
    fileprivate struct List {
        var row: ListRow
        var rate = RateMeter()
    }

    fileprivate struct State {
        var runs: [JobID: RunProgress] = [:]
        var lists: [JobID: List] = [:]
        /// The jobs whose run or list is known from another node only.
        var heard: Set<JobID> = []
        /// The parents of running children, and the running children of each parent.
        var parents: [JobID: JobID] = [:]
        var children: [JobID: Set<JobID>] = [:]
        /// Jobs whose list has changed since ``takeChanges()``.
        var changedLists: Set<JobID> = []
        /// The clients that wait until the program of a job has written more than `size` bytes, or a run of the job begins or
        /// ends.
        var readers: [JobID: [ObjectIdentifier: (size: Int64, promise: Promise<Void, Never>)]] = [:]
    }

    private let state = Mutex(State())

    /// The progress of a job; nil if the job is not running or has reported nothing.
    package func progress(of job: JobID) -> Progress? { state.withLock { $0.progress(of: job) } }

    func begin(_ progress: RunProgress, of row: JobRow) {
        state.withLock { state in
            state.forget(row.id)
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
            if state.lists[progress.job] == nil { state.leave(progress.job) }
        }
        wakeReaders(of: progress.job)
    }

    /// Stores the present row of a job's list; nil removes the list.
    func put(_ list: ListRow?, of job: JobID) {
        state.withLock { state in
            state.forget(job)
            state.put(list, of: job)
        }
    }

    /// Removes a job that is over.
    func end(_ job: JobID) {
        state.withLock { $0.remove(job) }
        wakeReaders(of: job)
    }

    // MARK: - Other nodes

    /// Jobs of other nodes that are kept. News of a job that come after its end would stay for good.
    private static let mostHeard = 10_000

    /// The run of a job at another node, which `make` makes if it is new.
    func elsewhere(_ job: JobID, _ run: RunID, _ make: () -> RunProgress) -> RunProgress {
        state.withLock { state in
            let (known, isHeard) = (state.runs[job], state.heard.contains(job))
            if let known, isHeard, known.run >= run { return known }
            let progress = make()
            if known == nil || isHeard {
                state.hear(job, atMost: Self.mostHeard)
                state.runs[job] = progress
            }
            return progress
        }
    }

    /// Stores a list as another node has it, unless more of it has ended as far as this one knows.
    func hear(_ list: ListRow) {
        state.withLock { state in
            if let known = state.lists[list.job]?.row, (known.id, known.ended) >= (list.id, list.ended) { return }
            guard state.runs[list.job] == nil || state.heard.contains(list.job) else { return }
            state.hear(list.job, atMost: Self.mostHeard)
            state.put(list, of: list.job)
        }
    }

    /// Forgets what other nodes have told of jobs that have changed since, or of all, as some of these nodes may be gone.
    func forget(_ jobs: [JobID], all: Bool) {
        state.withLock { state in
            if all { for job in state.heard { state.forget(job) } }
            for job in jobs where state.runs[job] == nil || state.heard.contains(job) { state.remove(job) }
        }
        for job in jobs { wakeReaders(of: job) }
    }

    /// Whether what it has of a job can be shown while the job's row names this run.
    package func isAbout(_ run: RunID?, of job: JobID) -> Bool {
        state.withLock { state in
            guard state.heard.contains(job), state.lists[job] == nil else { return true }
            return state.runs[job].map { $0.run == run } ?? true
        }
    }

    func list(of job: JobID) -> ListRow? { state.withLock { $0.lists[job]?.row } }

    /// The running sources of each owner in each queue.
    package var slots: [String: [UInt32: Int]] {
        state.withLock { state in
            var slots: [String: [UInt32: Int]] = [:]
            for (job, run) in state.runs where !state.heard.contains(job) {
                slots[run.queue, default: [:]][run.owner, default: 0] += 1
            }
            return slots
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

    // MARK: - Changes

    /// Whether there may be news now or soon.
    var isActive: Bool { state.withLock { !$0.runs.isEmpty || !$0.changedLists.isEmpty } }

    /// Jobs with news and the lists around them, with the news of each.
    func takeChanges() -> [JobID: RunProgress.News] {
        state.withLock { state in
            var changes: [JobID: RunProgress.News] = [:]
            for job in exchange(&state.changedLists, with: []) { changes[job] = RunProgress.News() }
            for (job, run) in state.runs {
                if let news = run.takeNews() { changes[job] = news }
            }
            for job in Array(changes.keys) {
                var next = state.parents[job]
                while let parent = next, changes[parent] == nil {
                    changes[parent] = RunProgress.News()
                    next = state.parents[parent]
                }
            }
            return changes
        }
    }
}

extension Board.State {
    fileprivate mutating func put(_ list: ListRow?, of job: JobID) {
        guard let list else {
            lists[job] = nil
            if runs[job] == nil { leave(job) }
            return
        }
        if lists[job]?.row.id == list.id {
            lists[job]?.row = list
        } else {
            lists[job] = Board.List(row: list)
        }
        changedLists.insert(job)
    }

    /// Notes that another node has told of a job.
    fileprivate mutating func hear(_ job: JobID, atMost most: Int) {
        if heard.count >= most { for job in heard { forget(job) } }
        heard.insert(job)
    }

    /// Forgets what another node has told of a job, if it has.
    fileprivate mutating func forget(_ job: JobID) {
        guard heard.remove(job) != nil else { return }
        runs[job] = nil
        lists[job] = nil
    }

    fileprivate mutating func remove(_ job: JobID) {
        runs[job] = nil
        lists[job] = nil
        heard.remove(job)
        leave(job)
    }

    fileprivate mutating func leave(_ job: JobID) {
        changedLists.remove(job)
        guard let parent = parents.removeValue(forKey: job) else { return }
        children[parent]?.remove(job)
        if children[parent]?.isEmpty == true { children[parent] = nil }
    }

    /// The progress of a list is in bytes if any child counts bytes, else in finished children.
    fileprivate mutating func progress(of job: JobID) -> Progress? {
        guard let list = lists[job]?.row else { return runs[job]?.latest }
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
