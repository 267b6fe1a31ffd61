import InMemoryStore
import JobCore
import JobModel

/// What callers are answered (invariants 1, 7 and 8).
extension Oracle {
    func asks(
        _ id: RequestID, _ request: CoreRequest, _ caller: Caller, user: Int?, at now: CoreTime, _ world: World
    ) {
        var existed = false
        func visible(_ id: JobID) -> KnownJob? {
            jobs[id].flatMap { caller.isAdmin || $0.row.owner == caller.uid ? $0 : nil }
        }
        switch request {
        case .job(let job), .result(let job, _, _): existed = visible(job) != nil
        case .wait(let ids, _), .jobs(let ids): existed = ids.allSatisfy { visible($0) != nil }
        case .cancel(let job):
            if let job = visible(job) {
                existed = true
                job.cancelAsked = true
                unreadyTree(job)
            }
        case .retry(let job, let point):
            if let job = visible(job) {
                existed = true
                job.retries.asks(id, from: point)
            }
        case .remove(let job):
            if let job = visible(job) {
                existed = true
                job.removeAsked = true
            }
        case .watch(let scope, let subscription):
            subscriptions[subscription] = KnownSubscription(scope, caller)
        case .submit(let new):
            for job in new {
                guard let subscription = job.subscription else { continue }
                subscriptions[subscription] = KnownSubscription(WatchScope(.jobs([])), caller)
            }
        case .setQueue(let name, _): changingQueues[name, default: 0] += 1
        case .setSchedule, .suspendSchedule, .removeSchedule: changingSchedules += 1
        default: break
        }
        requests[id] = OpenRequest(
            request: request, caller: caller, user: user, askedAt: now.monotonic, existed: existed, version: version)
    }

    private func unreadyTree(_ job: KnownJob) {
        unready(job)
        for children in job.children.values { for child in children { unreadyTree(child) } }
    }

    func abandons(_ id: RequestID) { requests[id]?.isAbandoned = true }

    func answers(_ id: RequestID, _ answer: CoreAnswer, at now: CoreTime, _ world: World) {
        lastAnswered = nil
        guard let open = requests.removeValue(forKey: id) else {
            return world.violate(7, "request \(id) gets an answer that nobody waits for, or a second one")
        }
        lastAnswered = open
        if case .failed(let error) = answer {
            checkRefusal(error, open, at: now, world)
            if case .retry(let job, _) = open.request { jobs[job]?.retries.isRefused(id) }
        }
        switch open.request {
        case .setSchedule, .suspendSchedule, .removeSchedule: changingSchedules -= 1
        default: break
        }
        switch (open.request, answer) {
        case (.setSchedule(let new), .schedule(let view)):
            if !storedSchedules.contains(new.key) || view.schedule.key != new.key {
                world.violate(1, "the schedule \(new.key) is answered before it is stored")
            }
        case (.schedule, .schedule), (.suspendSchedule, .schedule), (.schedules, .schedules), (.removeSchedule, .done),
            (.runSchedule, .submitted):
            break
        case (.submit(let new), .submitted(let answers)): checkSubmitted(new, answers, open, at: now, world)
        case (.job, .job(let snapshot)), (.cancel, .job(let snapshot)): checkSnapshot(snapshot, open, world)
        case (.retry(let job, _), .job):
            if let job = jobs[job], !job.retries.isAnswered(id) {
                world.violate(1, "the retry of job \(job.id) is answered before it is stored")
            }
        case (.remove(let job), .done):
            if jobs[job] != nil { world.violate(1, "the removal of job \(job) is answered before it is stored") }
        case (.wait(let ids, _), .job(let snapshot)):
            if ids.count > 1 { world.violate(7, "a wait for \(ids) is answered with one job") }
            checkShown([snapshot], ids, open, world)
            checkWaited(ids, open, world)
        case (.wait(let ids, _), .finished): checkWaited(ids, open, world)
        case (.jobs(let ids), .jobs(let snapshots)):
            checkShown(snapshots, ids, open, world)
            checkWaited(ids, open, world)
        case (.jobs(let ids), .unfinished):
            for id in ids { jobs[id].map { checkVisible($0, open, world) } }
        case (.watch(let scope, let id), .watching(let snapshots, _)): opens(id, scope, snapshots, open, world)
        case (.list(let filter), .page(let snapshots, let next)): checkPage(filter, snapshots, next, open, world)
        case (.statistics, .statistics(let statistics)): checkCounts(statistics.jobs, queue: nil, open, world)
        case (.queues, .queues(let statuses)):
            for status in statuses { checkCounts(status.jobs, queue: status.settings.name, open, world) }
        case (.setQueue(let name, _), .queue(let status)):
            changed(name)
            if changingQueues[name] == nil, queues[name] != status.settings {
                world.violate(1, "the queue \(name) is answered before it is stored")
            }
        case (.setQueue(let name, _), .failed): changed(name)
        case (.result, .result), (.probe, .done), (.configure, .done), (_, .failed): break
        default: world.violate(7, "request \(id) gets the answer to another question")
        }
        if case .configure = open.request { hostLimit = max(settings.perHost, 6) }
        if case .cancel(let id) = open.request, case .job = answer, let job = jobs[id], !job.isOver {
            job.isCancelled = true
        }
    }

    private func changed(_ name: String) {
        let left = (changingQueues[name] ?? 1) - 1
        changingQueues[name] = left > 0 ? left : nil
        shares.forgetTurns(in: name)
    }

    // MARK: - Refusals

    private func checkRefusal(_ error: CoreError, _ open: OpenRequest, at now: CoreTime, _ world: World) {
        switch (error.code, open.request) {
        case (.notFound, .job(let job)), (.notFound, .result(let job, _, _)), (.notFound, .cancel(let job)):
            if open.existed, jobs[job] != nil, jobs[job]?.root.removeAsked == false {
                world.violate(1, "job \(job) is not found, and is stored")
            }
        case (.notFound, .wait(let ids, _)), (.notFound, .jobs(let ids)):
            if open.existed, ids.allSatisfy({ jobs[$0] != nil && jobs[$0]?.root.removeAsked == false }) {
                world.violate(1, "a job of \(ids) is not found, and is stored")
            }
        case (.storage, _): checkStorageRefusal(world)
        case (.timeout, .wait(_, let timeout)):
            let waited = Double(now.monotonic - open.askedAt) / 1e9
            guard let timeout, waited >= timeout - 0.000_001 else {
                return world.violate(7, "a wait ran out of time after \(waited) s")
            }
        case (.timeout, _): world.violate(7, "a request that is no wait ran out of time")
        case (.busy, _), (.forbidden, _), (.wrongState, _), (.shuttingDown, _), (.keyConflict, _), (.invalid, _),
            (.notFound, _):
            break
        }
        if case .shuttingDown = error.code, !world.isStopping, isStarted {
            world.violate(7, "a request is refused for a stop that nobody asked for")
        }
    }

    private func checkStorageRefusal(_ world: World) {
        let since = world.clock.elapsed - world.store.lastUnwell
        if world.store.health == .well, world.store.lastUnwell < 0 || since > 120_000_000_000 {
            world.violate(1, "the storage is said to fail, and it works")
        }
    }

    // MARK: - Submissions

    private func checkSubmitted(
        _ new: [NewJob], _ answers: [Result<SubmittedJob, CoreError>], _ open: OpenRequest, at now: CoreTime,
        _ world: World
    ) {
        guard new.count == answers.count else {
            return world.violate(1, "\(answers.count) answers to \(new.count) jobs")
        }
        for (new, answer) in zip(new, answers) {
            switch answer {
            case .success(let submitted):
                guard let job = jobs[submitted.job] else {
                    world.violate(1, "job \(submitted.job) is answered and not stored")
                    continue
                }
                if job.row.owner != open.caller.uid || job.row.spec != new.spec {
                    world.violate(1, "job \(job.id) is another than was submitted")
                }
                // It may have been given up meanwhile.
                if let subscription = new.subscription, subscriptions[subscription] != nil {
                    let known = KnownSubscription(WatchScope(.jobs([job.id])), open.caller)
                    known.isOpen = true
                    subscriptions[subscription] = known
                    if !submitted.state.isTerminal, job.isOver { known.endIsDue(job.id) }
                }
            case .failure(let error):
                if case .keyConflict(let id) = error.code, jobs[id] == nil {
                    world.violate(1, "a key belongs to job \(id), which is not stored")
                }
                if case .busy = error.code { checkBusy(open.caller.uid, new, world) }
                if case .storage = error.code { checkStorageRefusal(world) }
                if case .shuttingDown = error.code, !world.isStopping {
                    world.violate(7, "a submission is refused for a stop that nobody asked for")
                }
                if let subscription = new.subscription { subscriptions[subscription] = nil }
            }
        }
    }

    /// A limit is reached where a submission is refused for it: what is counted is given back.
    private func checkBusy(_ owner: UInt32, _ new: NewJob, _ world: World) {
        let limits = settings.limits
        let slack = 150 + runs.count
        let pending = pendingWrites.count == 0 ? 0 : 500
        if counts.waiting[owner, default: 0] + slack + pending < limits.queuedJobsPerUser,
            counts.allWaiting + slack + pending < limits.queuedJobs,
            counts.bytes[owner, default: 0] + 300_000 + Int64(pending) * 2_000 < settings.storedPerUser
        {
            world.violate(
                4,
                "user \(owner) is refused, with \(counts.waiting[owner, default: 0]) waiting jobs and \(counts.bytes[owner, default: 0]) bytes"
            )
        }
    }

    // MARK: - What is shown

    private func checkSnapshot(_ snapshot: JobView, _ open: OpenRequest, _ world: World) {
        let shown = snapshot.job
        guard let job = jobs[shown.id] else {
            // It may have been removed while it was read.
            if version == open.version { world.violate(1, "job \(shown.id) is shown and not stored") }
            return
        }
        if !open.caller.isAdmin, job.row.owner != open.caller.uid {
            world.violate(1, "user \(open.caller.uid) is shown job \(job.id) of user \(job.row.owner)")
        }
        if shown.state.isTerminal, case .cancel = open.request, !job.isOver {
            world.violate(9, "the cancel of job \(job.id) is answered before it is stored")
        }
    }

    private func checkShown(_ snapshots: [JobView], _ ids: [JobID], _ open: OpenRequest, _ world: World) {
        if snapshots.map(\.job.id) != ids { world.violate(7, "who asks for \(ids) is shown other jobs") }
        for snapshot in snapshots { checkSnapshot(snapshot, open, world) }
    }

    private func checkVisible(_ job: KnownJob, _ open: OpenRequest, _ world: World) {
        guard !open.caller.isAdmin, job.row.owner != open.caller.uid else { return }
        world.violate(1, "user \(open.caller.uid) is told of job \(job.id) of user \(job.row.owner)")
    }

    private func checkWaited(_ ids: [JobID], _ open: OpenRequest, _ world: World) {
        for case let job? in ids.map({ jobs[$0] }) {
            checkVisible(job, open, world)
            if !job.isOver { world.violate(7, "a wait is answered before the end of job \(job.id) is stored") }
        }
    }

    private func opens(
        _ id: SubscriptionID, _ scope: WatchScope, _ snapshots: [JobView], _ open: OpenRequest, _ world: World
    ) {
        // It may have been given up meanwhile.
        guard let subscription = subscriptions[id] else { return }
        subscription.isOpen = true
        for snapshot in snapshots {
            let shown = snapshot.job
            guard let job = jobs[shown.id] else { continue }
            if !subscription.covers(job) { world.violate(7, "a watch shows job \(job.id), which it does not cover") }
            if shown.state.isTerminal {
                // Of an end that the core does not know to be stored a notification is yet to come.
                if case .jobs(let ids) = scope.subject, ids.contains(job.id), job.isOver, !isBeingSaved(job.id) {
                    subscription.told[job.id] = .init(
                        state: shown.state, link: shown.link, outcomes: shown.outcomes.count, isOver: true,
                        generation: job.generation)
                }
            } else if job.isOver {
                subscription.endIsDue(job.id)
            }
        }
    }

    private func isBeingSaved(_ id: JobID) -> Bool {
        pendingWrites.values.contains { write in
            if case .save(let rows) = write { rows.contains { $0.id == id } } else { false }
        }
    }

    private func checkPage(
        _ filter: JobFilter, _ snapshots: [JobView], _ next: JobID?, _ open: OpenRequest, _ world: World
    ) {
        let ids = snapshots.map(\.job.id)
        let isNewest = filter.order == .newest
        if zip(ids, ids.dropFirst()).contains(where: { isNewest ? $0 <= $1 : $0 >= $1 }) {
            world.violate(1, "a page is not in order")
        }
        if ids.count > filter.limit { world.violate(1, "a page has \(ids.count) jobs of \(filter.limit)") }
        for snapshot in snapshots where !filter.states.isEmpty && !filter.states.contains(snapshot.job.state) {
            world.violate(1, "a page shows job \(snapshot.job.id), which is \(snapshot.job.state)")
        }
        if let owner = filter.owner, let other = snapshots.first(where: { $0.job.owner != owner }) {
            world.violate(1, "a page of user \(owner) shows job \(other.job.id) of user \(other.job.owner)")
        }
        // Whole, where nothing came and went meanwhile and states, which may be ahead of what is stored, do not matter.
        guard filter.states.isEmpty, version == open.version, filter.tag == nil || filter.parent == nil else { return }
        checked.pages += 1
        let expected = jobs.values.filter { job in
            job.row.parent?.job == filter.parent && (filter.owner == nil || filter.owner == job.row.owner)
                && (filter.queue == nil || filter.queue == job.row.spec.queue)
                && (filter.tag.map(job.row.spec.tags.contains) ?? true)
                && (filter.after.map { isNewest ? job.id < $0 : job.id > $0 } ?? true)
        }.map(\.id).sorted(by: isNewest ? { $0 > $1 } : { $0 < $1 })
        if Array(expected.prefix(filter.limit)) != ids, ids.count == filter.limit || next == nil {
            world.violate(
                1,
                "a page shows \(ids.count) jobs, of \(expected.count): the first that differs is \(Self.first(expected, ids))"
            )
        }
    }

    private static func first(_ expected: [JobID], _ found: [JobID]) -> String {
        for (index, id) in expected.enumerated() where index >= found.count || found[index] != id { return "\(id)" }
        return "none"
    }

    // MARK: - Counts

    private func checkCounts(_ given: [JobState: Int], queue: String?, _ open: OpenRequest, _ world: World) {
        // What is on its way, waits for files to be removed, or could not be stored yet, is counted already, so both agree only where nothing is.
        guard world.store.isQuiet, world.cleanUps == 0, !world.core.inspection.storageFails else { return }
        checked.counts += 1
        let counted = counts.totals(owner: open.caller.isAdmin ? nil : open.caller.uid, queue: queue)
        func told(_ state: JobState) -> Int { given[state, default: 0] }
        let active = told(.queued) + told(.running)
        // A job that has begun its first link may still be stored as queued.
        let stored = counted[JobState.queued.number] + counted[JobState.running.number]
        var wrong = active == stored ? nil : "\(active) queued and running jobs instead of \(stored)"
        for state in [JobState.scheduled, .succeeded, .failed, .cancelled] where told(state) != counted[state.number] {
            wrong = wrong ?? "\(told(state)) \(state) jobs instead of \(counted[state.number])"
        }
        if let wrong { world.violate(8, "\(queue.map { "queue \($0)" } ?? "the daemon") counts \(wrong)") }
    }
}

extension CoreRequest {
    func isCancel(of id: JobID) -> Bool {
        if case .cancel(let job) = self { job == id } else { false }
    }
}
