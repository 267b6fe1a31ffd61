import JobModel

/// Queues, settings that change, and whether the storage works.
extension JobCore {
    func status(of name: String, _ caller: Caller) -> QueueStatus {
        QueueStatus(
            settings: scheduler.settings(of: name) ?? QueueSettings(name: name, concurrency: 0),
            perUser: scheduler.perUser(of: name),
            jobs: counters.totals(queue: name, owner: caller.isAdmin ? nil : caller.uid), takesJobs: takesJobs(name))
    }

    /// The queues that there are: those that were made, and those that have jobs that the caller may see.
    func statuses(for caller: Caller) -> [QueueStatus] {
        let used = Set(counters.queues(of: caller.isAdmin ? nil : caller.uid))
        return scheduler.names.filter { takesJobs($0) || used.contains($0) }.map { status(of: $0, caller) }
    }

    /// Whether the configuration or an administrator made a queue. One that was taken out of the file is there for the jobs
    /// that it has, and what they make, and takes no others.
    func takesJobs(_ name: String) -> Bool { configuredQueues.contains(name) || storedQueues.contains(name) }

    func setQueue(_ name: String, _ change: QueueChange, _ id: RequestID, _ caller: Caller) {
        guard caller.isAdmin else {
            return fail(id, CoreError(.forbidden(nil), "Only administrators change queues; ask one of them."))
        }
        guard phase == .serving else { return fail(id, .stopping) }
        let present = scheduler.settings(of: name)
        let others = queueChanges.keys.count { $0 != name && scheduler.settings(of: $0) == nil }
        guard present != nil || scheduler.names.count + others < QueueSettings.most else {
            return fail(
                id,
                CoreError(.busy(retryAfter: 60), "There are \(QueueSettings.most) queues already; use one of them."))
        }
        // Changes of one queue are stored one after another, as each builds on the one before; as many wait as requests
        // may be open.
        guard queueChanges[name] == nil else {
            queueChanges[name]?.append { [unowned self] in setQueue(name, change, id, caller) }
            return
        }
        queueChanges[name] = []
        let changed = (present ?? QueueSettings(name: name, concurrency: 16)).changed(change)
        write(.queue(changed)) { [unowned self] result in
            switch result {
            case .failure(let error): fail(id, CoreError(error))
            case .success:
                storedQueues.insert(name)
                open(changed)
                answer(id, .queue(status(of: name, caller)))
            }
            for next in queueChanges.removeValue(forKey: name) ?? [] { next() }
        }
    }

    /// Opens a queue that was there when jobs were accepted that go to it, and is in no configuration any more.
    func openForgotten(_ name: String) {
        log(
            .warning, "A queue with jobs is not configured; they run one at a time, and it takes no new ones.",
            queue: name)
        // How many it let run is not known any more, and no queue was ever allowed fewer than one.
        open(QueueSettings(name: name, concurrency: 1))
    }

    func open(_ queue: QueueSettings) {
        scheduler.open(queue, perUser: settings.perUser(queue))
    }

    func configure(_ changed: CoreSettings, _ policy: ResourcePolicy?, _ id: RequestID) {
        settings = changed
        admission = Admission(policy: policy ?? admission.policy, limits: changed.limits)
        scheduler.configure(perHost: changed.perHost, openLists: changed.openLists)
        configuredQueues = Set(changed.queues.map(\.name))
        // Also those that are configured no more, which go on as they are.
        for name in scheduler.names {
            if let queue = scheduler.settings(of: name) { open(queue) }
        }
        // As at a start: what an administrator set is stored, and comes before what the configuration says.
        for queue in changed.queues where !storedQueues.contains(queue.name) { open(queue) }
        // Jobs may be kept for less long than the timer was set for.
        if phase == .serving { setTimer(.retention, in: 0) }
        // Those of the machine may be newer.
        readZones()
        answer(id, .done)
    }

    func probe(_ id: RequestID) {
        guard phase == .serving else { return answer(id, .done) }
        write(.probe) { [unowned self] result in
            storageAnswered(result.map { _ in })
            answer(id, .done)
        }
    }
}

extension QueueSettings {
    fileprivate func changed(_ change: QueueChange) -> QueueSettings {
        var changed = self
        changed.concurrency = change.concurrency ?? concurrency
        changed.perUser = change.perUser ?? perUser
        changed.isSuspended = change.isSuspended ?? isSuspended
        return changed
    }
}
