import Dispatch
package import JobModel
import Synchronization

/// How far the jobs are that run now, for all who show jobs. It is never stored, and no round waits for it.
package final class Board: Sendable {
    fileprivate struct List {
        var row: ListRow
        var rate = RateMeter()
    }

    fileprivate struct State {
        var runs: [JobID: RunProgress] = [:]
        var lists: [JobID: List] = [:]
        /// The list that a child belongs to, of those that run, and the children that run of each.
        var parents: [JobID: JobID] = [:]
        var children: [JobID: Set<JobID>] = [:]
    }

    private let state = Mutex(State())

    /// How far a job is; nil where it does not run, or has reported nothing.
    package func progress(of job: JobID) -> Progress? { state.withLock { $0.progress(of: job) } }

    func begin(_ progress: RunProgress, of row: JobRow) {
        state.withLock { state in
            state.runs[row.id] = progress
            state.join(row)
        }
    }

    /// A run is over, and nothing is told of its progress any more.
    func end(_ progress: RunProgress) {
        state.withLock { state in
            guard state.runs[progress.job] === progress else { return }
            state.runs[progress.job] = nil
            if state.lists[progress.job] == nil { state.leave(progress.job) }
        }
    }

    /// A list has come further; nil where it is over.
    func put(_ list: ListRow?, of job: JobID) {
        state.withLock { state in
            guard let list else {
                state.lists[job] = nil
                if state.runs[job] == nil { state.leave(job) }
                return
            }
            if state.lists[job]?.row.id == list.id {
                state.lists[job]?.row = list
            } else {
                state.lists[job] = List(row: list)
            }
        }
    }

    /// A job is over.
    func end(_ job: JobID) {
        state.withLock { state in
            state.runs[job] = nil
            state.lists[job] = nil
            state.leave(job)
        }
    }

    /// These jobs, and the lists that they are part of, from the nearest.
    func affected(by jobs: Set<JobID>) -> Set<JobID> {
        state.withLock { state in
            var affected = jobs
            for job in jobs {
                var next = state.parents[job]
                while let parent = next, affected.insert(parent).inserted { next = state.parents[parent] }
            }
            return affected
        }
    }

    /// How many reports a row of progress stands for.
    func takeUpdates(of job: JobID) -> Int {
        state.withLock { $0.runs[job] }?.takeUpdates() ?? 1
    }
}

extension Board.State {
    fileprivate mutating func join(_ row: JobRow) {
        guard let parent = row.parent else { return }
        parents[row.id] = parent.job
        children[parent.job, default: []].insert(row.id)
    }

    fileprivate mutating func leave(_ job: JobID) {
        guard let parent = parents.removeValue(forKey: job) else { return }
        children[parent]?.remove(job)
        if children[parent]?.isEmpty == true { children[parent] = nil }
    }

    /// Of a list in bytes where any child counts bytes, else in finished children.
    fileprivate mutating func progress(of job: JobID) -> Progress? {
        guard let list = lists[job]?.row else { return runs[job]?.latest }
        let running = children[job] ?? []
        var bytes = list.bytes
        var total: Int64? = running.count < list.total - list.ended ? nil : bytes
        var countsBytes = bytes > 0
        // In no order, as it is a sum.
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
        sum.rate = lists[job]?.rate.measure(sum.completed, at: .now())
        return sum
    }
}
