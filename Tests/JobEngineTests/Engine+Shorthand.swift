import JobModel
import JobStore

@testable import JobEngine

extension ReadyQueue {
    /// Takes in what a fetch gave; `known` tells the jobs that changed since it began.
    func fetched(_ fetch: Fetch, _ jobs: [Job], limit: Int, known: (JobID) -> Bool) {
        fetched(fetch, jobs, limit: limit, known: Set(jobs.map(\.id).filter(known)))
    }
}

extension ReadyQueue.Entry {
    /// An entry for a job that is in the middle of its chain.
    init(position: ReadyPosition, queue: String, host: String?, job: Job?, isUnderWay: Bool) {
        self.init(underWay: position, queue: queue, host: host)
    }
}

extension HostBoard {
    init(limit: Int) {
        self.init(limit: limit, lists: limit, timers: limit)
    }
}
