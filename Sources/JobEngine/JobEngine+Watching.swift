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
            let watch = addWatch(scope, caller, watcher)
            // Looked at once more, as what ended before the watch began is not told of any more.
            let jobs = try await visible(ids, to: caller)
            for job in jobs where job.state.isTerminal { watches.finished(job.id) }
            let shown = jobs.map(snapshot)
            let (below, more) = try await descendants(of: shown, scope, caller, limit: Self.snapshots)
            return (watch, shown + below, more)
        }
        let watch = addWatch(scope, caller, watcher)
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

    /// Ends a watch, after what the engine has to do now.
    package nonisolated func endWatch(_ watch: Int) {
        enter { $0.unwatch(watch) }
    }

    /// Begins to watch, and lets running jobs know that somebody wants to hear of their progress.
    func addWatch(_ scope: WatchScope, _ caller: Caller, _ watcher: any JobWatcher) -> Int {
        let watch = watches.add(scope, caller, watcher)
        // What an audience hears of its jobs do tell already.
        guard watches.isAlone(watch) else { return watch }
        for entry in below(scope) where watches.needProgress(of: entry.job, parents: parents(of: entry.job)) {
            entry.progress.setWatched(true)
        }
        // Its interval may be shorter than the one after which the engine would look.
        progressed()
        return watch
    }

    /// The jobs in memory that a watch may hear of, and those below them.
    private func below(_ scope: WatchScope) -> [ActiveJob] {
        guard case .jobs(let ids) = scope.subject else { return Array(active.values) }
        var found = ids.compactMap { active[$0] }
        var next = 0
        while next < found.count {
            found += found[next].children.compactMap { active[$0] }
            next += 1
        }
        return found
    }

    // MARK: - Changes of state

    func emit(_ entry: ActiveJob) { emit(entry.job) }

    /// Tells those who watch a job of its state.
    func emit(_ job: Job) {
        let watchers = watches.watchers(of: job, parents: parents(of: job))
        if !watchers.isEmpty {
            let event = JobEvent(job: job.id, job.state, snapshot: snapshot(job))
            for watcher in watchers { watcher.receive(event) }
        }
        if job.state.isTerminal { watches.finished(job.id) }
    }

    // MARK: - Progress

    /// Running jobs have made progress that somebody wants to hear of.
    func progressed() {
        repeat {
            var armed: Set<Int> = []
            var jobs = freshJobs.take()
            while !jobs.isEmpty {
                // However many of its children have news, what a parent makes of them is worked out once.
                var above: Set<JobID> = []
                for id in jobs {
                    guard let entry = active[id] else { continue }
                    note(entry, &armed)
                    if let parent = entry.job.parent?.job { above.insert(parent) }
                }
                for id in above {
                    guard let entry = active[id] else { continue }
                    entry.progress.report(children(of: entry))
                }
                // Those above are noted also where their cells do not announce them.
                jobs = freshJobs.take() + above
            }
            // Nobody is told anything before the shortest interval ends, so there is no need to look until then.
        } while !freshJobs.settle(isAwaited: watches.shortest.map { alarms?.isSet(.progress($0)) == true } ?? false)
    }

    /// Puts a job among those that an interval's end tells of; `armed` are the intervals that are sure to end.
    private func note(_ entry: ActiveJob, _ armed: inout Set<Int>) {
        let hearers = hearers(of: entry)
        // Nobody takes its progress: who watched it has gone, or hears only of those above it.
        if hearers.isEmpty {
            entry.progress.setWatched(watches.needProgress(of: entry.job, parents: parents(of: entry.job)))
        }
        for hearer in hearers {
            fresh[hearer.interval, default: []].insert(entry.job.id)
            if armed.insert(hearer.interval).inserted {
                alarms?.setEarlier(.progress(hearer.interval), in: Double(hearer.interval) / 1000)
            }
        }
    }

    /// Who hears of a job in memory, looked up once for as long as the same watch.
    private func hearers(of entry: ActiveJob) -> [JobWatches.Hearer] {
        if entry.hearers.version != watches.version {
            entry.hearers = (watches.version, watches.hearers(of: entry.job, parents: parents(of: entry.job)))
        }
        return entry.hearers.list
    }

    /// Reports what changed to the watchers of an interval: each of them is told of all its jobs at once.
    func report(_ interval: Int) {
        progressed()
        var rows: [Int: [ProgressBatch.Row]] = [:]
        for id in (fresh.removeValue(forKey: interval) ?? []).sorted() {
            guard let entry = active[id], entry.job.state == .running,
                let (progress, updates) = entry.progress.take(every: interval)
            else { continue }
            let row = ProgressBatch.Row(
                job: id, link: entry.job.link, links: entry.job.spec.links.count, progress,
                coalesced: max(0, updates - 1))
            for hearer in hearers(of: entry) where hearer.interval == interval {
                rows[hearer.audience, default: []].append(row)
            }
        }
        for (audience, rows) in rows.sorted(by: { $0.key < $1.key }) {
            let batch = ProgressBatch(rows)
            for watcher in watches.watchers(in: audience) { watcher.receive(batch) }
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
