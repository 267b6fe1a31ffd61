import JobStore
import DeferredKit
package import JobModel

/// Telling those who watch and those who wait.
extension JobEngine {
    /// The most snapshots of jobs that were not named, in the answer to a watch.
    private static let snapshots = 1000

    /// Begins to watch; gives the watch's number, snapshots, and whether there were more jobs than those.
    package func watch(
        _ scope: WatchScope, for caller: Caller, _ watcher: any JobWatcher
    ) async throws(EngineError) -> (watch: Int, jobs: [JSON], truncated: Bool) {
        if case .jobs(let ids) = scope.subject {
            _ = try await visible(ids, to: caller)
            let watch = watches.add(scope, caller, watcher)
            watchBegan()
            // Looked at once more, as what ended before the watch began is not told of any more.
            let jobs = try await visible(ids, to: caller)
            for job in jobs where job.state.isTerminal { watches.finished(job.id) }
            let shown = jobs.map(snapshot)
            let (below, more) = try await descendants(of: shown, scope, caller, limit: Self.snapshots)
            return (watch, shown + below, more)
        }
        let watch = watches.add(scope, caller, watcher)
        watchBegan()
        var filter = JobFilter()
        filter.states = [.scheduled, .queued, .running]
        if case .tag(let tag) = scope.subject { filter.tag = tag }
        filter.limit = Self.snapshots
        filter.order = .oldest
        let (jobs, next) = try await list(filter, for: caller)
        let (below, more) = try await descendants(of: jobs, scope, caller, limit: Self.snapshots - jobs.count)
        return (watch, jobs + below, next != nil || more)
    }

    /// Snapshots of the unfinished jobs below `jobs` where the watch covers them, each behind the one it is below of, and
    /// whether there are more than `limit`.
    private func descendants(
        of jobs: [JSON], _ scope: WatchScope, _ caller: Caller, limit: Int
    ) async throws(EngineError) -> (jobs: [JSON], isCut: Bool) {
        guard scope.includesChildren else { return ([], false) }
        var found: [JSON] = []
        var filter = JobFilter()
        filter.states = [.scheduled, .queued, .running]
        filter.order = .oldest
        var next = 0
        var parents = jobs
        while next < parents.count {
            let parent = parents[next]
            next += 1
            guard let id = parent["job"]?.int, parent["children"] != nil, parent["finishedAt"] == nil else { continue }
            guard found.count < limit else { return (found, true) }
            filter.parent = JobID(id)
            filter.limit = limit - found.count
            let (children, rest) = try await list(filter, for: caller)
            found += children
            parents += children
            if rest != nil { return (found, true) }
        }
        return (found, false)
    }

    package func unwatch(_ watch: Int) {
        watches.remove(watch)
    }

    /// Lets running jobs know that somebody wants to hear of their progress.
    func watchBegan() {
        for entry in active.values {
            entry.progress.setWatched(!watches.intervals(for: entry.job, parents: parents(of: entry.job)).isEmpty)
        }
    }

    // MARK: - Changes of state

    func emit(_ entry: ActiveJob) { emit(entry.job) }

    /// Tells those who watch a job of its state.
    func emit(_ job: Job) {
        let watchers = watches.watchers(of: job, parents: parents(of: job))
        if !watchers.isEmpty {
            let event = JobEvent(job: job.id, .state(job.state, snapshot: snapshot(job)))
            for watcher in watchers { watcher.receive(event) }
        }
        if job.state.isTerminal { watches.finished(job.id) }
    }

    // MARK: - Progress

    /// A running job has made progress that somebody wants to hear of.
    func progressed(_ id: JobID) {
        guard let entry = active[id] else { return }
        note(entry)
        for parent in parents(of: entry.job) {
            guard let above = active[parent.id] else { continue }
            above.progress.report(children(of: above))
            note(above)
        }
    }

    private func note(_ entry: ActiveJob) {
        let intervals = watches.intervals(for: entry.job, parents: parents(of: entry.job))
        // Who watched it has gone: nothing is announced until somebody watches again.
        if intervals.isEmpty { entry.progress.setWatched(false) }
        for interval in intervals {
            fresh[interval, default: []].insert(entry.job.id)
            alarms?.setEarlier(.progress(interval), in: Double(interval) / 1000)
        }
    }

    /// Reports what changed to the watchers of an interval.
    func report(_ interval: Int) {
        for id in fresh.removeValue(forKey: interval) ?? [] {
            guard let entry = active[id], entry.job.state == .running, let (progress, updates) = entry.progress.take()
            else { continue }
            let watchers = watches.watchers(of: entry.job, parents: parents(of: entry.job), interval: interval)
            guard !watchers.isEmpty else { continue }
            let event = JobEvent(
                job: id,
                .progress(
                    link: entry.job.link, links: entry.job.spec.links.count, progress, coalesced: max(0, updates - 1)))
            for watcher in watchers { watcher.receive(event) }
        }
    }

    // MARK: - Waiting

    /// Calls `done`, on the engine, once all of the jobs are over; gives a number to give the wait up by, or nil where
    /// nothing was left to wait for.
    package func wait(
        for ids: [JobID], timeout: Double?, caller: Caller,
        _ done: @escaping @Sendable (Result<[JSON], EngineError>) -> Void
    ) async throws(EngineError) -> Int? {
        _ = try await visible(ids, to: caller)
        // Registered first and looked at after, so that no end falls between.
        let number = waits.add(ids, caller, done)
        let jobs: [Job]
        do {
            jobs = try await visible(ids, to: caller)
        } catch {
            _ = waits.expired(number)
            throw error
        }
        for job in jobs where job.state.isTerminal && active[job.id] == nil {
            for wait in waits.ended(job.id, of: number) { answer(wait) }
        }
        guard waits.isOpen(number) else { return nil }
        if let timeout { alarms?.set(.wait(number), in: timeout) }
        return number
    }

    package func giveUp(wait: Int) {
        _ = waits.expired(wait)
        alarms?.clear(.wait(wait))
    }

    /// Gives a wait what it waited for.
    func answer(_ wait: JobWaits.Wait) {
        alarms?.clear(.wait(wait.number))
        // Owned by the engine; it ends with the reads.
        Task {
            do throws(EngineError) {
                wait.done(.success(try await visible(wait.ids, to: wait.caller).map(snapshot)))
            } catch {
                wait.done(.failure(error))
            }
        }
    }
}
