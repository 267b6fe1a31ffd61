import InMemoryStore
import JobModel
import JobCore

/// Invariants of answers and notifications.
extension Oracle {
    /// The notifications of a subscription.
    struct Watch {
        let scope: WatchScope
        let caller: Caller
        var versions: [JobID: Int64] = [:]
        var ended: Set<JobID> = []
        let node: Int
        /// False if its round may not have been committed.
        var isCertain: Bool

        var jobs: [JobID]? { if case .jobs(let jobs) = scope.subject { jobs } else { nil } }

        /// Returns whether it must still be told that a job has ended.
        func isOwedEnd(of row: JobRow) -> Bool {
            isCertain && jobs?.contains(row.id) == true && !ended.contains(row.id) && !row.isRemoving
        }
    }

    func asks(_ id: RequestID, _ request: CoreRequest, _ caller: Caller, user: Int?, at node: Int) {
        requests[id] = Asked(request: request, caller: caller, user: user, node: node)
        switch request {
        case .change(let job, .set): changed.insert(job)
        case .changeAll(let jobs, .set, onlyCounts: false): changed.formUnion(jobs)
        case .change(let job, .remove): removals.insert(job)
        case .change(let job, .retry): retries.insert(job)
        case .changeAll(let jobs, .remove, onlyCounts: false): removals.formUnion(jobs)
        case .watch(let scope, let subscription):
            watches[subscription] = Watch(scope: scope, caller: caller, node: node, isCertain: false)
        case .submit(let jobs):
            for job in jobs {
                guard let subscription = job.subscription else { continue }
                watches[subscription] = Watch(
                    scope: WatchScope(.jobs([])), caller: caller, node: node, isCertain: false)
            }
        default: break
        }
    }

    /// Notes that a client gives up its wait.
    func forget(_ input: CoreInput) {
        switch input {
        case .abandon(let id):
            overSince[id] = nil
            if requests.removeValue(forKey: id) != nil { abandoned.insert(id) }
        case .unsubscribe(let id):
            watches[id] = nil
            over.remove(id)
            unsubscribed.insert(id)
        default: break
        }
    }

    /// Checks an answer and returns its request.
    func answered(_ id: RequestID, _ answer: CoreAnswer, _ world: World) -> Asked? {
        guard let asked = requests.removeValue(forKey: id) else {
            world.expect(abandoned.remove(id) != nil, 7, "Request \(id) was answered twice.")
            return nil
        }
        overSince[id] = nil
        switch (asked.request, answer) {
        case (.submit(let jobs), .submitted(let answers)):
            world.expect(jobs.count == answers.count, 7, "A submission of \(jobs.count) got \(answers.count) answers.")
            for (job, answer) in zip(jobs, answers) { submitted(job, answer, asked, world) }
        case (.wait(let jobs), .done):
            // A job may have restarted in the round in which it ended.
            let early = jobs.filter { isOpen($0, world) && !retries.contains($0) }
            world.expect(early.isEmpty, 7, "Wait \(id) is over before job \(early.min() ?? 0).")
        case (.wait(let jobs), .failed(let error)) where error.code == ProtocolError.Code.notFound.rawValue:
            let isMissing = jobs.contains { job in
                world.store.job(job).map { row in
                    row.isRemoving || world.store.isDamaged(job)
                        || !asked.caller.isAdmin && row.owner != asked.caller.uid
                } ?? true
            }
            world.expect(isMissing, 7, "Wait \(id) was refused, and all of its jobs are there.")
        case (.watch(_, let subscription), .done): watches[subscription]?.isCertain = true
        case (.runSchedule, .submitted(let jobs)):
            for case .success(let job) in jobs { untold.remove(job.job) }
        case (.change(let job, .cancel), .changed):
            if let row = world.store.job(job) {
                world.expect(
                    row.state.isTerminal || row.stop != nil || retries.contains(job), 9,
                    "Job \(job) was cancelled, and goes on.")
            }
        case (.change(let job, .remove), .done):
            world.expect(
                world.store.job(job) == nil || world.store.isDamaged(job), 1, "Job \(job) was removed, and is there.")
        case (_, .failed): break
        default: break
        }
        return asked
    }

    private func submitted(
        _ new: NewJob, _ answer: Result<SubmittedJob, ProtocolError>, _ asked: Asked, _ world: World
    ) {
        guard case .success(let submitted) = answer else {
            if let subscription = new.subscription { watches[subscription] = nil }
            return
        }
        guard let row = world.store.job(submitted.job) else {
            // Another node may have run it, and removed it to make room.
            if world.isLate { return }
            return world.fail(1, "Job \(submitted.job) was answered, and is not stored.")
        }
        if submitted.isCreated { untold.remove(row.id) }
        world.expect(row.owner == asked.caller.uid, 1, "Job \(row.id) is of another owner than its client.")
        if submitted.isCreated {
            world.expect(row.plan == new.terms.lasting.plan, 1, "Job \(row.id) is not what was submitted.")
        }
        if let subscription = new.subscription, !unsubscribed.contains(subscription) {
            watches[subscription] = Watch(
                scope: WatchScope(.jobs([submitted.job])), caller: asked.caller, node: asked.node,
                isCertain: submitted.isCreated && !row.state.isTerminal)
        }
    }

    /// Checks a notification.
    func notified(_ subscribers: [SubscriptionID], _ change: JobChange, _ world: World) {
        let row = change.row
        if let stored = world.store.job(row.id) {
            world.expect(stored.version >= row.version, 2, "Job \(row.id) was told before its round was committed.")
        }
        for id in subscribers {
            // Taken out to avoid a copy of its state.
            guard var watch = watches.removeValue(forKey: id) else { continue }
            if let last = watch.versions[row.id] {
                // A node is told again of what it may have missed.
                world.expect(
                    row.version > last || !world.isAlone && row.version == last, 7,
                    "Subscription \(id) was told of job \(row.id) out of order.")
            }
            world.expect(
                watch.caller.isAdmin || watch.caller.uid == row.owner, 7,
                "Subscription \(id) was told of another user's job \(row.id).")
            if watch.jobs?.contains(row.id) == true {
                world.expect(
                    !watch.ended.contains(row.id), 7, "Subscription \(id) was told of job \(row.id) after its end.")
            }
            watch.versions[row.id] = row.version
            if row.state.isTerminal {
                watch.ended.insert(row.id)
                if !watch.scope.includesChildren, let jobs = watch.jobs, watch.ended.isSuperset(of: jobs) {
                    over.insert(id)
                }
            }
            watches[id] = watch
            if row.state.isTerminal {
                owed[id]?.remove(row.id)
                owedElsewhere[id]?.remove(row.id)
            }
        }
    }
}
