import InMemoryStore
import JobModel
import JobCore

/// The invariants. They share no code with the core and see each request, effect and row change.
final class Oracle {
    struct Asked {
        let request: CoreRequest
        let caller: Caller
        let user: Int?
        let node: Int
    }

    /// Requests without an answer.
    var requests: [RequestID: Asked] = [:]
    var watches: [SubscriptionID: Watch] = [:]
    /// Subscriptions that name jobs and were told the end of each.
    var over: Set<SubscriptionID> = []
    /// Ends that the effects of the current round must report.
    var owed: [SubscriptionID: Set<JobID>] = [:]
    /// Ends in rounds of other nodes, which the effects of a node's next round must report.
    var owedElsewhere: [SubscriptionID: Set<JobID>] = [:]
    /// Jobs with a requested removal, and with a requested retry.
    var removals: Set<JobID> = []
    var retries: Set<JobID> = []
    /// Jobs whose settings a request changes.
    var changed: Set<JobID> = []
    /// The last starts in queues with a start rate, by elapsed time.
    var starts: [String: [Int64]] = [:]
    /// Requests abandoned by their clients.
    var abandoned: Set<RequestID> = []
    var unsubscribed: Set<SubscriptionID> = []
    /// The elapsed time since which all jobs of a wait have ended.
    var overSince: [RequestID: Int64] = [:]
    /// Finished jobs before the current round, plus those that ended in it.
    var finished = CountValue()
    /// Counted from row changes.
    var counts: [CountKey: CountValue] = [:]
    var unfinished = 0
    /// Current queues, and the previous settings of queues that the current round changed.
    var queues: [String: QueueSettings] = [:]
    var before: [String: QueueSettings] = [:]
    /// Files being removed, the jobs that wait for the removal, and the node that removes them.
    var cleaning: [WorkID: (job: JobID, node: Int)] = [:]
    /// The job changes of the current round, and the ids of the jobs.
    private(set) var changes: [RowChange<JobID, JobRow>] = []
    var touched: Set<JobID> = []
    /// Of these, new jobs, and jobs whose run may have passed its slot on.
    var fresh: Set<JobID> = []
    var continuing: Set<JobID> = []
    /// Owners of jobs changed in the current round, by queue.
    var movedShares: Set<Share> = []
    var turns = Turns()
    var pauses: [HostOwner: Pause] = [:]
    var outputs = OutputFiles()
    /// Jobs of trees with a damaged row: they need not end.
    var excused: Set<JobID> = []
    /// The links that may not run again after a restart, and the life in which they started.
    var unrepeatable: [JobID: (link: Int, life: Int64)] = [:]
    /// Jobs stored in the current round whose clients have not been told.
    var untold: Set<JobID> = []
    /// The latest stored job.
    private(set) var lastJob: JobID = 0
    private var roundsSinceLook = 0
    private var looks = 0

    // MARK: - Rounds

    func roundBegins(_ world: World) {
        for (id, jobs) in owed where watches[id] != nil && !jobs.isEmpty {
            world.fail(7, "Subscription \(id) was not told of the end of job \(jobs.min() ?? 0).")
        }
        owed = [:]
        untold = []
        if queues.isEmpty {
            for queue in world.scenario.settings.queues { queues[queue.name] = queue }
        }
        before = queues
    }

    /// Checks a committed round with these inputs; none for a reset.
    func committed(_ inputs: [CoreInput], _ world: World) {
        changes = world.store.changes
        for (id, jobs) in owedElsewhere where watches[id]?.node == world.node.number {
            owedElsewhere[id] = nil
            // It may have been retried or removed since.
            owed[id] = jobs.filter { job in
                !isOpen(job, world) && world.store.job(job)?.isRemoving == false
                    && watches[id]?.ended.contains(job) == false
            }
        }
        for (name, overrides) in world.store.rows.allQueues {
            queues[name] = overrides.applied(to: queues[name] ?? QueueSettings(name: name))
        }
        for input in inputs { hasHeard(input, world) }
        noteShares(isReset: inputs.isEmpty || inputs.contains { if case .configure = $0 { true } else { false } })
        touched = []
        finished = CountValue()
        for (key, value) in counts where key.state.isTerminal {
            finished.jobs += value.jobs
            finished.bytes += value.bytes
        }
        for change in changes where change.before?.state.isTerminal != true {
            finished.jobs += 1
            // The size at its end of a job that the same round removed is unknown.
            finished.bytes = finished.bytes.saturatingAdding(change.after?.size ?? Int64.max)
        }
        // The size of a lost output is added after its job has ended.
        for case .measured(_, let output) in inputs {
            finished.bytes = finished.bytes.saturatingAdding(output.size)
        }
        for change in changes { count(change.id, change.before, change.after) }
        var keys: Set<CountKey> = []
        for change in changes {
            touched.insert(change.id)
            if change.before == nil {
                world.expect(change.id > lastJob, 1, "Job \(change.id) has the id of an earlier one.")
                lastJob = max(lastJob, change.id)
                if let row = change.after, row.parent == nil, row.key?.hasPrefix(ScheduleKey.jobKeyPrefix) != true {
                    untold.insert(change.id)
                }
            }
            check(change.id, change.before, change.after, world)
            for (row, sign) in [(change.before, -1), (change.after, 1)] {
                guard let row else { continue }
                let key = CountKey(owner: row.owner, queue: row.queue, state: row.state)
                keys.insert(key)
                counts[key, default: CountValue()].jobs += sign
                counts[key, default: CountValue()].bytes += Int64(sign) * row.size
            }
        }
        for key in keys {
            let stored = world.store.counts[key] ?? CountValue()
            let counted = counts[key] ?? CountValue()
            world.expect(
                stored == counted, 8,
                "The store counts \(stored.jobs) jobs of \(stored.bytes) bytes of user \(key.owner) that are "
                    + "\(key.state) in \(key.queue), and there are \(counted.jobs) of \(counted.bytes).")
            if counted.jobs == 0 { counts[key] = nil }
        }
        checkAdmissions(world)
        checkSchedules(inputs, world)
        checkOutputs(inputs, changes, world)
    }

    /// Lets the effects of a round come later, once its node hears that it was stored.
    func putOff() {
        owedElsewhere.merge(owed) { $0.union($1) }
        (owed, untold) = ([:], [])
        outputs.daemonDied()
        endTurns()
    }

    /// Runs further checks now and then.
    func look(_ world: World) {
        guard let core = world.core, world.failure == nil else { return }
        endTurns()
        world.expect(untold.isEmpty, 1, "Job \(untold.min() ?? 0) was stored, and its client not told so.")
        lookForOutputs(world)
        checkMemory(of: core, world)
        roundsSinceLook += 1
        guard roundsSinceLook >= 40 else { return }
        roundsSinceLook = 0
        compare(core, world)
        looks += 1
        if !core.wantsTick { lookForLateness(world) }
        if !core.wantsTick { lookForIdleSlots(world) }
    }

    /// Checks that runs, requests, subscriptions and windows bound the memory.
    private func checkMemory(of core: Core, _ world: World) {
        let users = world.users.count
        // The core has not yet seen abandoned waits and recent ends.
        let underWay = world.engine.inbox.count + world.engine.held.count
        func expect(_ count: Int, atMost most: Int, _ what: StaticString) {
            world.expect(count <= most, 6, "The core has \(count) \(what) in memory, of at most \(most).")
        }
        let windows = core.scheduler.queues.values.flatMap { $0.shares.values.map(\.window.entries.count) }
        expect(windows.reduce(0, +), atMost: windows.count * (2 * 64 + 16), "jobs in windows")
        expect(windows.count, atMost: users * world.scenario.queues.count, "owners in queues")
        // A life that is over begins no run, and its core learns that at its next round.
        if world.isLiving { expect(core.running.count, atMost: world.engine.runs.count, "runs") }
        expect(core.waits.count, atMost: requests.count + underWay, "waits")
        expect(core.subscriptions.count, atMost: watches.count - over.count + underWay, "subscriptions")
        // Where a node is gone, the others all remove the files that it had begun to remove.
        if world.isAlone {
            expect(core.experience.cleaning.count, atMost: cleaning.count + underWay, "removals of files")
        }
        // Specs name two hosts beyond the scenario's.
        let hosts = world.scenario.hosts.count + 2
        expect(core.scheduler.hosts.pauses.count, atMost: users * hosts, "hosts that are left alone")
    }

    /// Checks that the core's memory equals that of a core rebuilt from the same rows and runs.
    func compare(_ core: Core, _ world: World) {
        guard world.engine.phase == .serving, world.engine.inbox.isEmpty, !world.store.isFaulty else { return }
        world.figures.comparisons += 1
        world.actOnStore()
        guard world.isLiving, world.store.isUpToDate else { return }
        let other = Core(settings: world.settings, life: world.life, at: world.clock.moment(random: 0.5))
        let runs = world.engine.runs.values.map(\.live).sorted { $0.run < $1.run }
        let now = world.clock.moment(random: 0.5)
        _ = world.store.round { (transaction) throws(StoreError) in
            try other.reset(from: transaction, runs: runs, start: .resumed, at: now)
        }
        let (live, anew) = (core.inspection, other.inspection)
        world.expect(live.runs == anew.runs, 8, "A reset has \(anew.runs.count) runs, and the core \(live.runs.count).")
        world.expect(live.slots == anew.slots, 8, "A reset counts the slots \(anew.slots), and the core \(live.slots).")
        world.expect(
            live.permits == anew.permits, 8, "A reset counts the permits \(anew.permits), and the core \(live.permits)."
        )
        world.expect(live.counts == anew.counts, 8, "A reset counts other jobs than the core.")
        world.expect(
            live.stored == anew.stored, 8, "A reset counts \(anew.stored) bytes by owner, and the core \(live.stored).")
        world.expect(live.queues == anew.queues, 8, "A reset has other queues than the core.")
    }

    /// The longest tolerated delay, in seconds.
    private static let patience: Int64 = 120

    /// Checks that due rows are handled soon and that waiting clients hear soon.
    private func lookForLateness(_ world: World) {
        let elapsed = world.clock.elapsed
        guard world.engine.phase == .serving, elapsed - world.servesSince > Self.patience * SimulatedClock.second else {
            return
        }
        for (id, asked) in requests where asked.node == world.node.number {
            guard case .wait(let jobs) = asked.request,
                !jobs.contains(where: { isOpen($0, world) || world.store.isDamaged($0) })
            else {
                overSince[id] = nil
                continue
            }
            let since = overSince[id] ?? elapsed
            overSince[id] = since
            world.expect(
                elapsed - since < Self.patience * SimulatedClock.second, 7,
                "All jobs of wait \(id) have ended, and it was not told.")
        }
        for work in world.store.work.values where work.kind != .removeParts && world.rests {
            world.fail(10, "The core rests, and there is work left over about job \(work.job).")
        }
        guard looks % 8 == 0 else { return }
        lookForPassedTimes(world)
        let late = world.clock.steady - Self.patience * 1000
        for row in world.store.allJobs where !row.state.isTerminal && !row.isRemoving && !excused.contains(row.id) {
            if let due = row.due, row.state == .scheduled || row.run == nil {
                world.expect(due > late, 3, "Job \(row.id) is \(row.state), and its time has come long ago.")
            }
            if row.waiting == .job, row.run == nil, world.rests {
                world.expect(
                    isAwaitable(row, world), 3, "Job \(row.id) waits for job \(row.awaits ?? 0), which is over.")
            }
            if row.waiting == .gate, let parent = row.parent, world.store.list(of: parent.job)?.id != parent.list {
                world.expect(
                    world.store.work.values.contains { $0.list == parent.list }, 10,
                    "Job \(row.id) waits for the gate of a list that is over, and no work left over cancels it.")
            }
            if let deadline = row.deadline, row.stop == nil {
                world.expect(deadline > late, 9, "Job \(row.id) goes on long after its deadline.")
            }
        }
    }

    /// Checks that no slot is free while a job could start that waits for nothing else.
    private func lookForIdleSlots(_ world: World) {
        world.actOnStore()
        guard world.store.isUpToDate, world.engine.phase == .serving, world.engine.inbox.isEmpty, !world.store.isFaulty
        else { return }
        for key in counts.keys.filter({ $0.state == .queued }).sorted(by: {
            ($0.queue, $0.owner) < ($1.queue, $1.owner)
        }) {
            // The starts of jobs that ended at once are not seen.
            guard let queue = queues[key.queue], !queue.isSuspended, queue.startRate == nil else { continue }
            let slots = slots(of: key.queue, world)
            let (all, own) = (slots.values.reduce(0, +), slots[key.owner] ?? 0)
            guard all < queue.concurrency, own < perUser(queue, world) else { continue }
            if let idle = mayStart(Share(queue: key.queue, owner: key.owner), world) {
                world.fail(
                    3,
                    "Job \(idle) of user \(key.owner) is ready, and \(queue.concurrency - all) slots of "
                        + "\(key.queue) are free (\(own) of \(perUser(queue, world)) are the user's).")
            }
        }
    }

    // MARK: - Slots

    /// Returns the taken slots of a queue by owner.
    func slots(of queue: String, _ world: World) -> [UInt32: Int] {
        var slots: [UInt32: Int] = [:]
        for run in world.engine.runs.values where run.live.hasSlot && run.live.queue == queue {
            slots[run.live.owner, default: 0] += 1
        }
        return slots
    }

    func perUser(_ queue: QueueSettings, _ world: World) -> Int {
        if let perUser = queue.perUser { return max(1, min(perUser, queue.concurrency)) }
        return share(of: queue.concurrency, world)
    }

    func share(of all: Int, _ world: World) -> Int {
        if all < 4 { return max(1, all) }
        return max(1, Int((Double(all) * world.scenario.settings.ownersShare).rounded(.down)))
    }

    func removesFiles(_ work: WorkRow, _ world: World) {
        world.expect(
            cleaning[work.id].map { $0.node != world.node.number } ?? true, 10,
            "The files of work \(work.id) are removed twice at a time.")
        cleaning[work.id] = (work.job, world.node.number)
    }
}
