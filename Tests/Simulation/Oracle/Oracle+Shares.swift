import InMemoryStore
import JobModel
import JobCore

/// Fair shares: a free slot goes to the owner with startable work who holds the fewest slots of the queue; ties go to
/// the owner served longest ago.
extension Oracle {
    struct Share: Hashable {
        let queue: String
        let owner: UInt32
    }

    /// The turns of each owner since the core last forgot them.
    struct Turns {
        private(set) var count: Int64 = 0
        /// The owner's last known turn.
        private var certain: [Share: Int64] = [:]
        /// Its latest possible turn: no effect shows the turn of a job that ended at once.
        private var possible: [Share: Int64] = [:]

        mutating func forget() { (certain, possible) = ([:], [:]) }

        mutating func add(_ share: Share) {
            count += 1
            certain[share] = count
            addPossible(share)
        }

        mutating func addPossible(_ share: Share) { possible[share] = max(possible[share] ?? 0, count) }

        /// Notes a future turn without an effect.
        mutating func addUnseen(_ share: Share) { possible[share] = .max }

        /// Returns whether `first` has had a turn since the last possible turn of `second`.
        func isMoreRecent(_ first: Share, than second: Share) -> Bool {
            (certain[first] ?? 0) > (possible[second] ?? 0)
        }
    }

    /// Notes a round's changes that affect shares.
    func noteShares(isReset: Bool) {
        if isReset {
            turns.forget()
            starts = [:]
        }
        fresh = []
        continuing = []
        movedShares = []
        for change in changes {
            if let row = change.after ?? change.before {
                movedShares.insert(Share(queue: row.queue, owner: row.owner))
            }
            if change.before == nil, change.after?.version == 1 { fresh.insert(change.id) }
            if let old = change.before, old.run != nil, old.waiting == .nothing { continuing.insert(change.id) }
        }
    }

    /// Notes possible turns without effects at the end of a round.
    func endTurns() {
        for share in movedShares { turns.addPossible(share) }
        movedShares = []
    }

    /// Checks that no other owner had a better claim to the turn of a run.
    func takesTurn(_ order: RunOrder, _ slots: [UInt32: Int], _ world: World) {
        let job = order.job
        // It may continue in its slot.
        guard !continuing.contains(job.id), let queue = queues[job.queue] else { return }
        let own = slots[job.owner] ?? 0
        let share = Share(queue: job.queue, owner: job.owner)
        if let host = order.live.host,
            let pause = pauses[HostOwner(host: host, owner: job.owner, node: world.node.number)]
        {
            world.expect(
                pause.certain <= world.clock.steady, 4,
                "Job \(job.id) starts, and user \(job.owner) was asked to leave \(host) alone.")
        }
        for user in world.users where user.profile.uid != job.owner {
            let owner = user.profile.uid
            guard counts[CountKey(owner: owner, queue: job.queue, state: .queued)] != nil else { continue }
            let other = Share(queue: job.queue, owner: owner)
            let others = slots[owner] ?? 0
            let isWaitingLonger =
                others == own && !movedShares.contains(other) && turns.isMoreRecent(share, than: other)
            guard others < own || isWaitingLonger, others < perUser(queue, world) else { continue }
            guard let passed = mayStart(other, world) else { continue }
            world.fail(
                5,
                "Job \(job.id) of user \(job.owner), who has \(own) slots of \(job.queue), starts before job "
                    + "\(passed) of user \(owner), who has \(others)"
                    + (isWaitingLonger ? " and was served longer ago." : "."))
        }
        turns.add(share)
    }

    /// Returns a job that could have started: it was ready before the round's turns, and its host has room.
    func mayStart(_ share: Share, _ world: World) -> JobID? {
        let ready = world.store.ready(queue: share.queue, owner: share.owner, limit: 8)
        return ready.first { row in
            let id = row.position.id
            guard !touched.contains(id) || fresh.contains(id) else { return false }
            guard let host = row.host else { return true }
            if let pause = pauses[HostOwner(host: host, owner: share.owner, node: world.node.number)],
                pause.possible > world.clock.steady
            {
                return false
            }
            let runs = world.engine.runs.values.filter { $0.live.host == host && $0.live.permits > 0 }
            return runs.reduce(0) { $0 + $1.live.permits } < world.scenario.settings.perHost
                && !runs.contains { $0.live.owner == share.owner }
        }?.position.id
    }

    // MARK: - Paused hosts

    struct HostOwner: Hashable {
        let host: String
        let owner: UInt32
        let node: Int
    }

    /// The end of an owner's pause of a host, by the steady clock.
    struct Pause {
        var certain: SteadyTime = 0
        /// The core may have heard of it in a round that was not committed.
        var possible: SteadyTime = 0
        /// The elapsed time at which the core last heard of a pause.
        var heardAt: Int64 = 0
    }

    /// Checks the pause when a run gets connections. A retry of a server's answer has waited as its own policy says.
    func asks(_ host: String, _ run: SimulatedEngine.Run, _ world: World) {
        guard run.live.host != host, run.order.job.lastFailure?.http == nil,
            let pause = pauses[HostOwner(host: host, owner: run.live.owner, node: world.node.number)],
            pause.heardAt < world.clock.elapsed
        else { return }
        world.expect(
            pause.certain <= world.clock.steady, 4,
            "Job \(run.live.job) asks \(host), which user \(run.live.owner) was asked to leave alone.")
    }

    /// Notes the possible pause of an input.
    func hears(_ input: CoreInput, _ world: World) {
        guard let (pause, until, _) = pause(of: input, world) else { return }
        pauses[pause, default: Pause()].possible = max(pauses[pause]?.possible ?? 0, until + 1)
    }

    /// Notes the certain pause of a committed input.
    func hasHeard(_ input: CoreInput, _ world: World) {
        guard let (pause, until, live) = pause(of: input, world),
            let change = changes.first(where: { $0.id == live.job }), change.before?.run == live.run,
            change.after != nil
        else { return }
        pauses[pause, default: Pause()].certain = max(pauses[pause]?.certain ?? 0, until)
        pauses[pause]?.heardAt = world.clock.elapsed
    }

    private func pause(of input: CoreInput, _ world: World) -> (HostOwner, SteadyTime, LiveRun)? {
        guard case .run(let run, .ended(let end)) = input, let seconds = end.outcome.error?.retryAfter, seconds > 0,
            let live = world.engine.runs[run]?.live, let host = end.outcome.error?.retryAfterHost ?? live.host
        else { return nil }
        let most = min(seconds, world.scenario.settings.longestBackOff)
        return (
            HostOwner(host: host, owner: live.owner, node: world.node.number), world.clock.steady + Int64(most * 1000),
            live
        )
    }
}
