import Logging
import JobModel
import JobStore

/// Giving places to jobs that are ready.
extension JobEngine {
    func pumpAll() {
        for name in queues.keys { pump(name) }
    }

    /// Starts what can start in a queue, and fetches more from the store where the window runs low.
    func pump(_ name: String) {
        guard phase == .serving, storageFailure == nil else { return }
        while queues[name]?.hasFreePlace == true, let entry = popFirst(name) { take(entry, name) }
        let hosts = hosts
        guard let fetch = queues[name]?.nextFetch(closed: { !hosts.isOpen($0) }) else { return }
        // Owned by the engine; it ends with the read.
        Task { await self.fetch(fetch, name) }
    }

    private func popFirst(_ name: String) -> ReadyQueue.Entry? {
        let hosts = hosts
        return queues[name]?.popFirst { hosts.isOpen($0) }
    }

    private func fetch(_ fetch: ReadyQueue.Fetch, _ name: String) async {
        let read = fence.begin()
        defer { fence.end(read) }
        let jobs: [Job]
        let limit = ReadyQueue.windowSize
        do {
            jobs =
                switch fetch {
                case .more(let position):
                    try await store.ready(queue: name, after: position, excluding: [], limit: limit)
                case .around(let hosts):
                    try await store.ready(queue: name, after: nil, excluding: hosts, limit: 64)
                }
        } catch {
            logger.error("The waiting jobs cannot be read.", metadata: ["queue": "\(name)", "error": "\(error)"])
            queues[name]?.fetchFailed()
            return
        }
        let known = Set(jobs.lazy.map(\.id).filter { !self.isCurrent($0, in: read) })
        queues[name]?.fetched(fetch, jobs, limit: limit, known: known)
        // With nothing found around the closed hosts, asking again at once would find nothing again.
        if fetch == .more(after: nil) || !jobs.isEmpty { pump(name) }
    }

    /// Gives a place to the job of `entry`.
    private func take(_ entry: ReadyQueue.Entry, _ name: String) {
        if let waiting = active[entry.position.id] {
            guard waiting.isParked else { return }
            waiting.isParked = false
            occupy(waiting, name, host: entry.host)
            if waiting.job.state == .queued { return begin(waiting) }
            return runStep(waiting)
        }
        if let job = entry.job {
            guard mayStart(entry, child: job) else { return }
            let holder = hold(job)
            occupy(holder, name, host: job.host)
            return begin(holder)
        }
        // Owned by the engine; it ends with the read. The place is kept meanwhile.
        queues[name]?.running += 1
        Task {
            let read = fence.begin()
            defer { fence.end(read) }
            let job = try? await store.job(entry.position.id)
            queues[name]?.running -= 1
            guard let job, job.state == .queued, isCurrent(job.id, in: read), mayStart(entry, child: job) else {
                return pump(name)
            }
            let holder = hold(job)
            occupy(holder, name, host: job.host)
            begin(holder)
        }
    }

    /// Whether the list that a child belongs to lets it start now. Where not, the list keeps it.
    private func mayStart(_ entry: ReadyQueue.Entry, child job: Job) -> Bool {
        guard let parent = job.parent else { return true }
        guard let list = active[parent.job], list.job.stop == nil, list.job.link == parent.link else {
            // The list is over: what it made is cancelled, whoever missed it.
            stopLater([job.id])
            return false
        }
        // Without a join the list is being taken up after a restart; it lets its children go when it has one.
        guard list.join?.mayStart == true else {
            list.held.append(entry)
            return false
        }
        list.join?.started += 1
        return true
    }

    private func begin(_ entry: ActiveJob) {
        do {
            _ = try handle(entry, .start)
        } catch {
            logger.error("A job that is not queued got a place.", metadata: ["job": "\(entry.job.id)"])
            leave(entry)
            release(entry.job.id)
            return
        }
        emit(entry)
        runStep(entry)
    }

    func occupy(_ entry: ActiveJob, _ name: String, host: String?) {
        queues[name]?.running += 1
        entry.hasPlace = true
        guard let host, !host.isEmpty, host != HostBoard.lists, host != HostBoard.timers else { return }
        hosts.enter(host)
        entry.host = host
    }

    /// Gives back the place of a job's host.
    func leaveHost(_ entry: ActiveJob) {
        guard let host = entry.host else { return }
        entry.host = nil
        hosts.leave(host)
        pumpAll()
    }

    /// Gives back all of a job's places.
    func leave(_ entry: ActiveJob) {
        let name = entry.job.spec.queue
        if entry.hasPlace {
            entry.hasPlace = false
            queues[name]?.running -= 1
        }
        if entry.host == nil { pump(name) } else { leaveHost(entry) }
    }

    /// Lets a job wait for a place in the middle of its chain.
    func park(_ entry: ActiveJob, host: String?) {
        entry.isParked = true
        leave(entry)
        let position = ReadyPosition(priority: entry.job.spec.priority, id: entry.job.id)
        let queue = entry.job.spec.queue
        queues[queue]?.insert(
            ReadyQueue.Entry(underWay: position, queue: queue, host: host))
        pump(queue)
    }

    /// Puts a stored job that became ready in its queue.
    func enqueue(_ job: Job) {
        queues[job.spec.queue]?.insert(job)
        pump(job.spec.queue)
    }
}
