import InMemoryStore
import JobCore
import JobModel

/// Looks at everything now and then, and at the end: what hangs, what leaks, what was forgotten (invariants 3, 4, 6, 10).
extension World {
    /// Whether the core waits for nothing but time, and has been well for a while.
    private var isCalm: Bool {
        isRunning && oracle.isStarted && store.isQuiet && store.health == .well
            && clock.elapsed - store.lastUnwell > 10_000_000_000
            && clock.elapsed - oracle.startedAt > 5_000_000_000
    }

    /// Slots that the core says are in use, by owner.
    func slots(in name: String) -> [UInt32: Int] {
        var used: [UInt32: Int] = [:]
        for slot in core.inspectSlots() where slot.queue == name { used[slot.owner] = slot.used }
        return used
    }

    /// Connections that the core says are used, by host.
    var hostPermits: [String: Int] {
        core.inspectHosts().reduce(into: [:]) { $0[$1.host] = $1.used }
    }

    func inspect() {
        guard isCalm, failure == nil else { return }
        oracle.checkRows(self)
        oracle.checkSlots(self)
        oracle.checkNothingWaits(self)
        oracle.checkEndsAreTold(self)
        oracle.checkSchedules(since: max(clockSetAt, store.lastUnwell, oracle.startedAt), self)
    }

    /// Goes on until no job is left, a day at a time; what waits for a time that a wrong clock gave gets it.
    private func waitForAll() {
        for _ in 0..<14 where failure == nil && !oracle.unfinished.isEmpty {
            let end = clock.elapsed + 86_400_000_000_000
            let events = figures.events + 300_000
            while failure == nil, !oracle.unfinished.isEmpty, step(until: end) {
                if figures.events > events { return violate(3, "the core is busy without end") }
            }
            guard failure == nil, let due = oracle.latestDue, due > clock.wall else { continue }
            set(clockWrongBy: clock.error + due.milliseconds - clock.wall.milliseconds + 1000)
        }
    }

    /// Faults and users stop. Everything has to end that can, and nothing may be left of what is over.
    func settle() {
        isSettling = true
        trace.add(.settle, at: clock.elapsed)
        effectsUntilCrash = nil
        storeHeals()
        set(clockWrongBy: 0)
        if !isRunning {
            let end = clock.elapsed + 120_000_000_000
            while !isRunning, failure == nil, step(until: end) {}
        }
        let soon = clock.elapsed + 30_000_000_000
        while failure == nil, step(until: soon) {}
        endSchedules()
        for name in scenario.queues where failure == nil {
            ask(.setQueue(name, QueueChange(concurrency: 16, isSuspended: false)), by: administrator.caller, user: nil)
        }
        for run in sources.all { schedule(.runEnds(run), in: random.spread(0.01, 2)) }
        // Retries and long delays take their time; what is there after two weeks hangs.
        waitForAll()
        guard failure == nil else { return }
        if let id = oracle.unfinished.max(), let job = oracle.jobs[id] {
            return violate(3, "\(oracle.unfinished.count) jobs hang; job \(id): \(job)")
        }
        let after = clock.elapsed + 20_000_000_000
        while failure == nil, step(until: after) {}
        guard failure == nil else { return }
        oracle.checkRows(self)
        oracle.checkSlots(self)
        oracle.checkEnd(self)
    }
}

extension Oracle {
    /// What is in memory follows from what runs, what is watched, what is asked and what is being stored; nothing is kept
    /// beside that, however many jobs there are.
    func checkMemory(_ world: World) {
        let core = world.core.inspection
        // What could not be stored is kept until it is.
        guard isStarted, !world.isStopping, !core.storageFails else { return }
        checked.memory += 1
        let running = counts.all[JobState.running.number]
        // A few are about to end or to make children, by a timer or a turn that comes next.
        let resident =
            running + runs.count + core.pendingWrites + core.pendingReads + core.waitingForTurns + world.cleanUps
            + core.timers + 8
            + removedBy.values.reduce(0) { $0 + $1.count }
        func bound(_ name: String, _ value: Int, _ most: Int) {
            if value > most { world.violate(6, "\(name): \(value) are in memory, of \(most): \(core); \(idle(world))") }
        }
        bound("jobs", core.residentJobs, resident)
        bound("runs", core.runs, runs.count)
        bound("slots", core.slots, resident)
        let owners = world.users.count + 1
        bound("ready jobs", core.windowEntries, owners * queues.count * JobCore.windowSize + resident)
        if core.pendingReads == 0 { bound("jobs remembered", core.departures, 0) }
        if core.pendingWrites == 0, world.store.yields == 0 { bound("jobs being stored", core.submitting, 0) }
        bound("subscriptions", core.subscriptions, subscriptions.count)
        bound("waits", core.waits, requests.count)
        bound(
            "timers", core.timers,
            2 * running + runs.count + core.waits + core.subscriptions + world.scenario.hosts.count + 1_020)
    }

    /// The jobs in memory that are not stored as running.
    private func idle(_ world: World) -> String {
        world.core.inspectJobs().filter { jobs[$0]?.row.state != .running && jobs[$0]?.run == nil }.map { id in
            "\(id) \(jobs[id].map { "\($0)" } ?? "removed")"
        }.joined(separator: "; ")
    }

    /// The latest time that a job waits for.
    var latestDue: Timestamp? {
        timed.compactMap { jobs[$0].flatMap { $0.row.state == .scheduled ? $0.row.notBefore : nil } }.max()
    }

    /// Everything is as it was stored.
    func checkRows(_ world: World) {
        let stored = world.store.tables.count
        if stored != jobs.count { world.violate(1, "\(stored) jobs are stored where \(jobs.count) should be") }
    }

    /// Slots and hosts are taken by what runs and by nothing else.
    func checkSlots(_ world: World) {
        var slots: [String: [UInt32: Int]] = [:]
        for run in runs.values {
            slots[run.key.queue, default: [:]][run.key.owner, default: 0] += 1
        }
        for name in queues.keys.sorted() {
            let used = world.slots(in: name)
            if used != slots[name] ?? [:] {
                world.violate(4, "slots of \(name) in use are \(used) where \(slots[name] ?? [:]) run")
            }
        }
        var hosts: [String: Int] = [:]
        for run in runs.values where !run.isProgram { hosts[run.key.host, default: 0] += run.connections }
        let used = world.hostPermits
        if used != hosts { world.violate(4, "hosts in use are \(used) where \(hosts) run") }
    }

    /// No slot is free while work could have it; nothing that is due or overdue is left lying.
    func checkNothingWaits(_ world: World) {
        let wall = world.clock.wall
        let monotonic = world.clock.now.monotonic
        for id in timed {
            guard let job = jobs[id] else { continue }
            if let time = job.row.notBefore, job.row.state == .scheduled, wall.seconds(since: time) > 2 {
                world.violate(
                    3, "job \(id) was due at \(time) and still waits: \(job), and the core has \(world.core.inspection)"
                )
            }
            if let time = job.row.deadlineAt, job.row.stop == nil, wall.seconds(since: time) > 2 {
                world.violate(9, "job \(id) passed its deadline at \(time) and goes on")
            }
        }
        if let left = unfinished.lazy.filter(isLeftOver).min() {
            world.violate(
                3, "job \(left) waits for the gate of a list that is over: \(jobs[left].map { "\($0)" } ?? "")")
        }
        var onHosts: [String: Int] = [:]
        for run in runs.values { onHosts[run.key.host, default: 0] += run.connections }
        for (name, known) in shares.queues {
            guard let queue = queues[name], !queue.isSuspended, changingQueues[name] == nil else { continue }
            let used = world.slots(in: name)
            guard used.values.reduce(0, +) < queue.concurrency else { continue }
            checked.idleSlots += 1
            for (owner, share) in known.owners where share.ready > 0 && used[owner, default: 0] < perUser(queue) {
                let free = share.hosts.keys.first { host in
                    onHosts[host, default: 0] < settings.perHost
                        && (backedOff[host] ?? 0) + 10_000_000 < monotonic
                }
                if let free {
                    world.violate(3, "user \(owner) has work for \(free) in \(name), which has a free slot")
                }
            }
        }
    }

    /// Whether a job waits for a gate that nobody opens any more.
    private func isLeftOver(_ id: JobID) -> Bool {
        guard let job = jobs[id], job.row.state == .queued, job.row.isGated, let list = job.parent else { return false }
        return list.row.state.isTerminal
    }

    /// Nothing is on its way, so whoever is to be told of an end was.
    func checkEndsAreTold(_ world: World) {
        for (id, subscription) in subscriptions where !subscription.due.isEmpty {
            world.violate(7, "the subscription \(id) was never told of the end of job \(subscription.due.min() ?? 0)")
        }
    }

    /// When all is over, nothing is in use and nothing was forgotten.
    func checkEnd(_ world: World) {
        for (id, request) in requests where !request.isAbandoned {
            world.violate(7, "request \(id) never got an answer")
        }
        checkEndsAreTold(world)
        if !runs.isEmpty { world.violate(3, "all is over, and \(runs.count) sources are at work") }
        let left = world.core.inspection
        if left.residentJobs != 0 || left.slots != 0 || left.hostConnections != 0 || left.openLists != 0 {
            world.violate(4, "all is over, and the core keeps \(left)")
        }
        if let marked = world.store.tables.marked.first {
            world.violate(10, "all is over, and job \(marked) is marked as running")
        }
        for (id, links) in world.files.parts {
            let state = jobs[id]?.row.state
            if state == nil || state == .succeeded || state == .cancelled {
                world.violate(
                    10,
                    "a part of job \(id), link \(links.min() ?? 0) is left, which is \(state.map { "\($0)" } ?? "gone")"
                )
            }
        }
    }
}
