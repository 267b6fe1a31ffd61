package import DeferredKit
import JobCore
package import JobModel
import Synchronization

/// The progress of running jobs, for everything that shows jobs.
///
/// Progress is never stored, and no round waits for it. A list counts what its children have done.
package final class Board: Sendable {
    fileprivate struct State {
        /// Jobs with a run or a list.
        var jobs: [JobID: JobProgress] = [:]
        /// Those of which only other nodes have reported.
        var heard: Set<JobID> = []
        /// The running children of each job.
        var children: [JobID: Set<JobID>] = [:]
        /// The clients that wait until the program of a job has written more than `size` bytes, or a run of the job begins or
        /// ends.
        var readers: [JobID: [ObjectIdentifier: (size: Int64, promise: Promise<Void, Never>)]] = [:]
    }

    private let state = Mutex(State())

    /// The progress of a job whose row names this run; nil if another run has reported it, or none.
    package func progress(of job: JobID, in run: RunID?) -> Progress? {
        state.withLock { $0.jobs[job]?.isOf(run) == true ? $0.progress(of: job) : nil }
    }

    func begin(_ order: RunOrder) {
        let row = order.job
        state.withLock { state in
            state.forgetHeard(row.id)
            state.jobs[row.id] = JobProgress(
                run: order.run, owner: row.owner, queue: row.queue, parent: row.parent?.job,
                list: state.jobs[row.id]?.list)
            if let parent = row.parent { state.children[parent.job, default: []].insert(row.id) }
        }
        wakeReaders(of: row.id)
    }

    /// What a run has reported so far; nothing if it is over.
    func reports(of run: RunID, of job: JobID) -> JobProgress {
        state.withLock { $0.jobs[job] }.flatMap { $0.run == run ? $0 : nil } ?? JobProgress()
    }

    /// Stores what a run reports, on any thread, unless the run is over.
    func update(_ run: RunID, of job: JobID, _ change: (inout JobProgress) -> Void) {
        let output: Int64? = state.withLock { state in
            guard var progress = state.jobs[job], progress.run == run else { return nil }
            change(&progress)
            state.jobs[job] = progress
            return progress.output
        }
        if let output { wakeReaders(of: job, at: output) }
    }

    /// Removes a run that is over; returns what it has reported.
    func end(_ run: RunID, of job: JobID) -> JobProgress? {
        defer { wakeReaders(of: job) }
        return state.withLock { state in
            guard let progress = state.jobs[job], progress.run == run else { return nil }
            state.jobs[job]?.run = nil
            if progress.list == nil { state.remove(job) }
            return progress
        }
    }

    /// Stores the present row of a job's list; nil removes the list.
    func put(_ list: ListRow?, of job: JobID) {
        state.withLock { state in
            state.forgetHeard(job)
            if let list {
                // Without a place, it shows no progress.
                if state.jobs[job] != nil || state.jobs.count < State.most { state.put(list) }
                return
            }
            state.jobs[job]?.list = nil
            if state.jobs[job]?.run == nil { state.remove(job) }
        }
    }

    // MARK: - Other nodes

    /// Notes a run at another node, unless a later one or one of this node is known.
    func hear(_ run: RunID, of job: JobID) {
        state.withLock { state in
            let known = state.jobs[job]
            if let other = known?.run, !state.heard.contains(job) || other >= run { return }
            state.makeRoom(for: job)
            state.jobs[job] = JobProgress(run: run, parent: known?.parent, list: known?.list)
        }
    }

    /// Stores a list as another node has it, unless more of it has ended as far as this one knows.
    func hear(_ list: ListRow) {
        state.withLock { state in
            let known = state.jobs[list.job]
            if let known = known?.list, (known.id, known.ended) >= (list.id, list.ended) { return }
            guard known?.run == nil || state.heard.contains(list.job) else { return }
            if known?.list == nil { state.makeRoom(for: list.job) }
            state.put(list)
        }
    }

    /// Forgets what other nodes have told of jobs that have changed since, or of all, as some of these nodes may be gone.
    func forget(_ jobs: [JobID], all: Bool) {
        state.withLock { state in
            if all { for job in state.heard { state.remove(job) } }
            for job in jobs where state.jobs[job]?.run == nil || state.heard.contains(job) { state.remove(job) }
        }
        for job in jobs { wakeReaders(of: job) }
    }

    /// The running sources of each owner in each queue.
    package var slots: [String: [UInt32: Int]] {
        state.withLock { state in
            state.jobs.reduce(into: [:]) { slots, entry in
                guard entry.value.run != nil, !state.heard.contains(entry.key) else { return }
                slots[entry.value.queue, default: [:]][entry.value.owner, default: 0] += 1
            }
        }
    }

    // MARK: - Output of programs

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

    /// Whether there is no run and no list, so that no progress changes.
    var isEmpty: Bool { state.withLock(\.jobs.isEmpty) }

    /// The present progress of each job with a run or a list.
    func present() -> [JobID: JobProgress] {
        state.withLock { state in
            Array(state.jobs.keys).reduce(into: [:]) { present, job in
                present[job] = state.jobs[job]
                present[job]?.latest = state.progress(of: job)
            }
        }
    }
}

extension Board.State {
    /// Jobs of other nodes that are kept, as news of a job that come after its end would stay for good; and the jobs from which on
    /// there is no place for another list.
    fileprivate static let most = 10_000

    /// Makes room for what another node tells of a job.
    fileprivate mutating func makeRoom(for job: JobID) {
        if heard.count >= Self.most { for job in heard { remove(job) } }
        heard.insert(job)
    }

    fileprivate mutating func forgetHeard(_ job: JobID) { if heard.contains(job) { remove(job) } }

    fileprivate mutating func put(_ list: ListRow) {
        var progress = jobs[list.job] ?? JobProgress()
        if progress.list?.id != list.id { progress.rate = RateMeter() }
        progress.list = list
        jobs[list.job] = progress
    }

    fileprivate mutating func remove(_ job: JobID) {
        heard.remove(job)
        guard let parent = jobs.removeValue(forKey: job)?.parent else { return }
        children[parent]?.remove(job)
        if children[parent]?.isEmpty == true { children[parent] = nil }
    }

    /// The progress of a list is in bytes if any child counts bytes, else in finished children.
    fileprivate mutating func progress(of job: JobID) -> Progress? {
        guard let list = jobs[job]?.list else { return jobs[job]?.latest }
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
        sum.rate = jobs[job]?.rate.measure(sum.completed)
        return sum
    }
}
