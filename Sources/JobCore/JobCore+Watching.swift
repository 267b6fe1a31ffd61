import JobModel

/// Notifies subscribers and answers waits.
extension JobCore {
    /// The most snapshots of jobs that were not named, in the answer to a watch.
    private static let snapshots = 1000

    // MARK: - Watching

    func watch(_ scope: WatchScope, _ subscription: SubscriptionID, _ id: RequestID, _ caller: Caller) {
        let watch = Watch(scope: scope, subscription: subscription, request: id, caller: caller)
        if case .jobs(let ids) = scope.subject {
            beginning.insert(subscription)
            return findAll(ids, for: caller) { [unowned self] found in
                let isWanted = beginning.remove(subscription) != nil
                switch found {
                case .failure(let error): fail(id, error)
                case .success(let jobs):
                    if isWanted { subscriptions.add(subscription, scope, caller) }
                    // Not for a job whose end is still being stored: its notification is yet to come.
                    for job in jobs.map(\.job) where job.state.isTerminal && table[job.id] == nil {
                        subscriptions.finished(job.id)
                    }
                    addDescendants(of: jobs, watch, limit: Self.snapshots, isTruncated: false)
                }
            }
        }
        subscriptions.add(subscription, scope, caller)
        var filter = JobFilter()
        filter.states = [.scheduled, .queued, .running]
        if case .tag(let tag) = scope.subject { filter.tag = tag }
        filter.limit = Self.snapshots
        filter.order = .oldest
        page(filter, caller) { [unowned self] result in
            switch result {
            case .failure(let error): fail(watch, error)
            case .success(let (jobs, next)):
                addDescendants(
                    of: snapshots(jobs), watch, limit: Self.snapshots - jobs.count, isTruncated: next != nil)
            }
        }
    }

    /// A request to watch.
    private struct Watch {
        let scope: WatchScope
        let subscription: SubscriptionID
        let request: RequestID
        let caller: Caller
    }

    private func fail(_ watch: Watch, _ error: CoreError) {
        subscriptions.remove(watch.subscription)
        fail(watch.request, error)
    }

    /// Answers with `jobs` and, where the watch covers them, their unfinished descendants, each behind its parent.
    private func addDescendants(of jobs: [JobView], _ watch: Watch, limit: Int, isTruncated: Bool) {
        guard watch.scope.includesChildren else {
            return answer(watch.request, .watching(jobs, isTruncated: isTruncated))
        }
        descend(Descent(watch, jobs, left: limit, isTruncated: isTruncated))
    }

    /// The jobs of a watch, while their descendants are read.
    private final class Descent {
        let watch: Watch
        /// Each behind its parent.
        var jobs: [JobView]
        /// The index of the first whose children were not asked for.
        var next = 0
        /// Jobs whose children were asked for; one may be named more than once.
        private var parents: Set<JobID> = []
        /// How many more there may be.
        var left: Int
        var isTruncated: Bool

        init(_ watch: Watch, _ jobs: [JobView], left: Int, isTruncated: Bool) {
            self.watch = watch
            self.jobs = jobs
            self.left = left
            self.isTruncated = isTruncated
        }

        private static func mayHaveUnfinishedChildren(_ job: Job) -> Bool {
            job.children > 0 && !job.state.isTerminal
        }

        /// The next job that may have unfinished children; nil at the end, or where there is no room for more.
        func nextParent() -> JobID? {
            while left > 0, next < jobs.count {
                let job = jobs[next].job
                next += 1
                if Self.mayHaveUnfinishedChildren(job), parents.insert(job.id).inserted { return job.id }
            }
            return nil
        }

        /// Whether some may be left out.
        var isCutShort: Bool { isTruncated || jobs[next...].contains { Self.mayHaveUnfinishedChildren($0.job) } }
    }

    private func descend(_ descent: Descent) {
        let watch = descent.watch
        // Nobody reads the rest where the connection has gone meanwhile.
        guard subscriptions.contains(watch.subscription), let parent = descent.nextParent() else {
            return answer(watch.request, .watching(descent.jobs, isTruncated: descent.isCutShort))
        }
        var filter = JobFilter()
        filter.states = [.scheduled, .queued, .running]
        filter.order = .oldest
        filter.parent = parent
        filter.limit = descent.left
        page(filter, watch.caller) { [unowned self] result in
            switch result {
            case .failure(let error): fail(watch, error)
            case .success(let (children, rest)):
                descent.jobs += snapshots(children)
                descent.left -= children.count
                if rest != nil { descent.isTruncated = true }
                descend(descent)
            }
        }
    }

    // MARK: - Progress

    func progressed(_ reports: [ProgressReport]) {
        var parents: Set<JobID> = []
        for report in reports {
            guard let id = runs[report.run], let entry = table[id] else { continue }
            recordProgress(report, of: entry)
            mark(entry)
            if let parent = entry.job.parent?.job { parents.insert(parent) }
        }
        // A parent's progress is computed once, however many of its children have made progress.
        while !parents.isEmpty {
            var above: Set<JobID> = []
            for id in parents.sorted() {
                guard let entry = table[id] else { continue }
                reportChildren(of: entry)
                if let parent = entry.job.parent?.job { above.insert(parent) }
            }
            parents = above
        }
    }

    /// How far a source has come, and what it has received since the last report.
    func recordProgress(_ report: ProgressReport, of entry: ActiveJob) {
        let before = entry.progress?.completed ?? 0
        entry.report(report.progress, updates: report.updates, at: now.monotonic)
        let received = report.progress.completed.saturatingSubtracting(before)
        guard received > 0, report.progress.unit == .bytes, entry.job.step?.type != .upload else { return }
        count(entry.job.owner) { $0.bytesReceived = $0.bytesReceived.saturatingAdding(received) }
    }

    /// A child of `entry` has ended, so `entry` has made progress.
    func markProgress(of entry: ActiveJob) {
        var next: ActiveJob? = entry
        while let entry = next {
            reportChildren(of: entry)
            next = entry.job.parent.flatMap { table[$0.job] }
        }
    }

    private func reportChildren(of entry: ActiveJob) {
        guard !coverage(of: entry).matches.isEmpty, lists[entry.job.id] != nil || entry.progress != nil else { return }
        // Thousands of children can end one after the other, and each time all are looked at.
        if entry.childrenCameFurther(at: now.monotonic) { readChildren(of: entry) }
        mark(entry)
    }

    private func readChildren(of entry: ActiveJob) {
        guard let progress = childrenProgress(of: entry) else { return }
        entry.report(ofChildren: progress, at: now.monotonic)
    }

    /// Adds a job to the next report of each interval.
    private func mark(_ entry: ActiveJob) {
        // The end of a complete transfer follows at once, and says more.
        if !entry.hasNewsOfChildren, entry.progress?.isComplete == true { return }
        for interval in coverage(of: entry).intervals {
            dirty[interval, default: []].insert(entry.job.id)
            guard !timers.isSet(.progress(interval)) else { continue }
            let next = (reportedAt[interval] ?? now.monotonic).saturatingAdding(Int64(interval) * 1_000_000)
            timers.set(.progress(interval), at: max(now.monotonic, next))
        }
    }

    /// The topics that cover a job in memory; looked up again only when subscriptions change.
    private func coverage(of entry: ActiveJob) -> Subscriptions.Coverage {
        if entry.coverage.version != subscriptions.version {
            let (known, missing) = table.ancestors(of: entry.job)
            entry.coverage = (
                subscriptions.version, subscriptions.coverage(of: entry.job, parents: known, isWhole: missing == nil)
            )
        }
        return entry.coverage.topics
    }

    /// Reports progress to the subscribers of an interval, all jobs of a subscriber at once.
    func tellProgress(_ interval: Int) {
        var rows: [Int: [ProgressRow]] = [:]
        for id in (dirty.removeValue(forKey: interval) ?? []).sorted() {
            guard let entry = table[id], entry.job.state == .running else { continue }
            if entry.hasNewsOfChildren {
                readChildren(of: entry)
                if entry.progress?.isComplete == true { continue }
            }
            guard let progress = entry.progress else { continue }
            let updates = entry.updatesSinceReport(interval)
            let row = ProgressRow(
                job: id, link: entry.job.link, links: entry.job.spec.links.count, progress,
                coalesced: max(0, updates - 1))
            for match in coverage(of: entry).matches where match.interval == interval {
                rows[match.topic, default: []].append(row)
            }
        }
        for (topic, rows) in rows.sorted(by: { $0.key < $1.key }) {
            emit(.progress(subscriptions.subscribers(of: topic), rows))
        }
        // Only intervals that somebody watches at are remembered.
        reportedAt[interval] = now.monotonic
        if reportedAt.count > 64 {
            reportedAt = reportedAt.filter { now.monotonic - $0.value < Int64($0.key) * 1_000_000 }
        }
    }

    // MARK: - Waiting

    /// Waits until all of these jobs are finished. A single one is answered as it is then. Of several only that is told, and
    /// they are asked for (``CoreRequest/jobs(_:)``) when there is room for them: very many waits may be over at once.
    func wait(_ ids: [JobID], timeout: Double?, _ id: RequestID, _ caller: Caller) {
        guard phase == .serving else { return fail(id, .stopping) }
        beginWait(id, ids, caller, timeout: timeout)
    }

    private func beginWait(_ id: RequestID, _ ids: [JobID], _ caller: Caller, timeout: Double?) {
        beginningWaits.insert(id)
        guard ids.count == 1 else {
            return findFinished(ids, for: caller) { [unowned self] found in
                guard beginningWaits.remove(id) != nil else { return }
                switch found {
                case .failure(let error): failWait(id, error)
                case .success(let over) where over.count == ids.count: answerWait(id, .finished)
                case .success(let over): addWait(id, ids, caller, over: over, timeout: timeout)
                }
            }
        }
        find(ids[0], for: caller) { [unowned self] found in
            guard beginningWaits.remove(id) != nil else { return }
            switch found {
            case .failure(let error): failWait(id, error)
            // A job whose end is still being stored does not count as finished.
            case .success(let job) where job.state.isTerminal && table[job.id] == nil:
                answerWait(id, .job(snapshot(job)))
            case .success: addWait(id, ids, caller, over: [], timeout: timeout)
            }
        }
    }

    private func addWait(_ id: RequestID, _ ids: [JobID], _ caller: Caller, over: [JobID], timeout: Double?) {
        waits.add(id, ids, caller)
        for job in over { _ = waits.finished(job, of: id) }
        if let timeout { setTimer(.wait(id), in: timeout) }
    }

    /// Nobody waits for the answer any more.
    func abandon(_ id: RequestID) {
        beginningWaits.remove(id)
        waits.remove(id)
        timers.clear(.wait(id))
    }

    /// Answers a wait; `job` is the one that ended last, nil where it was removed.
    func answer(_ wait: Waits.Wait, having job: Job?) {
        if let job, wait.ids == [job.id] { return answerWait(wait.request, .job(snapshot(job))) }
        // A job that ended earlier may have been retried meanwhile; then the wait goes on, with the timer that it has.
        beginWait(wait.request, wait.ids, wait.caller, timeout: nil)
    }

    private func answerWait(_ id: RequestID, _ answer: CoreAnswer) {
        timers.clear(.wait(id))
        self.answer(id, answer)
    }

    private func failWait(_ id: RequestID, _ error: CoreError) { answerWait(id, .failed(error)) }

    /// Shows finished jobs, each in brief form, or a single one whole.
    func show(_ ids: [JobID], _ id: RequestID, _ caller: Caller) {
        if ids.count == 1 {
            find(ids[0], for: caller) { [unowned self] found in show(found.map { [snapshot($0)] }, id) }
        } else {
            findAll(ids, for: caller) { [unowned self] found in show(found, id) }
        }
    }

    private func show(_ found: Result<[JobView], CoreError>, _ id: RequestID) {
        switch found {
        case .failure(let error): fail(id, error)
        case .success(let views):
            // An end that is still being stored does not count: a crash could undo it.
            let areOver = views.allSatisfy { $0.job.state.isTerminal && table[$0.job.id] == nil }
            answer(id, areOver ? .jobs(views) : .unfinished)
        }
    }
}

extension Progress {
    fileprivate var isComplete: Bool { total == completed }
}
