import InMemoryStore
import JobModel
import JobCore

/// What must hold when a run starts.
extension Oracle {
    /// Checks the start rate of a queue; a commit takes less than two seconds.
    private func checkStartRate(of queue: QueueSettings, _ world: World) {
        guard let rate = queue.startRate else { return }
        let name = "\(world.node.number)/\(queue.name)"
        let known = Array((starts[name] ?? []).suffix(rate.count))
        starts[name] = known + [world.clock.elapsed]
        guard known.count == rate.count, let first = known.first else { return }
        let elapsed = Double(world.clock.elapsed - first) / Double(SimulatedClock.second)
        world.expect(
            elapsed >= rate.seconds - 2, 4,
            "\(rate.count + 1) jobs of the queue \(queue.name) started in \(elapsed) seconds.")
    }

    /// Checks the start of a run.
    func starts(_ order: RunOrder, _ world: World) {
        let job = order.job
        // A job removed in the same round is told to stop at once.
        guard let row = world.store.job(job.id) else { return }
        world.expect(row.version >= job.version, 2, "Job \(job.id) starts before its round is committed.")
        world.expect(world.engine.runs[order.run] == nil, 2, "The run of job \(job.id) began before.")
        world.expect(
            !world.runs.contains { $0.order.job.id == job.id }, 2,
            "Job \(job.id) starts while an earlier run of it has not ended.")
        if world.isLate { return }
        if case .step = order.kind {} else { return }
        checkRepetition(of: row, world)
        world.expect(
            job.isReady(at: world.settings.node), 5,
            "Job \(job.id), bound to another node, starts at \(world.node.name).")
        world.expect(
            !job.outcomes.contains { $0.link == job.link }, 2, "Link \(job.link) of job \(job.id) runs again.")
        world.expect(
            job.stop == nil || job.isAtFinally, 9, "Job \(job.id) is stopped, and its link \(job.link) starts.")
        checkAncestors(of: job, world)
        // A node that repeats a removal after its end finds no file that the work names.
        world.expect(
            !cleaning.contains { $0.value.job == job.id && world.store.work[$0.key] != nil }, 10,
            "Job \(job.id) starts while its files are being removed.")
        guard let queue = queues[job.queue], let old = before[job.queue] ?? queues[job.queue] else { return }
        checkStartRate(of: queue, world)
        let slots = slots(of: job.queue, world)
        let (all, own) = (slots.values.reduce(0, +), slots[job.owner] ?? 0)
        world.expect(
            all + 1 <= max(queue.concurrency, old.concurrency), 4,
            "\(all + 1) jobs run in the queue \(job.queue), which has \(queue.concurrency) slots.")
        world.expect(
            own + 1 <= max(perUser(queue, world), perUser(old, world)), 4,
            "\(own + 1) jobs of user \(job.owner) run in the queue \(job.queue).")
        if let host = order.live.host { permits(host, adding: (job.owner, order.live.permits), world) }
        checkGate(of: job, world)
        if world.isAlone { takesTurn(order, slots, world) }
    }

    private func checkRepetition(of row: JobRow, _ world: World) {
        if row.step?.isRepeatable == false {
            let last = unrepeatable.updateValue((row.link, world.life), forKey: row.id)
            world.expect(
                last == nil || last?.link != row.link || last?.life == world.life, 2,
                "Link \(row.link) of job \(row.id) must not be repeated, and runs again after a restart.")
        }
        guard row.isSuspect else { return }
        for run in world.runs {
            guard let other = world.store.job(run.order.job.id), other.id != row.id, other.run == run.order.run,
                !world.store.isDamaged(other.id)
            else { continue }
            world.expect(!other.isSuspect, 2, "The suspects \(row.id) and \(other.id) run at the same time.")
        }
    }

    private func checkAncestors(of job: JobRow, _ world: World) {
        var child = job
        while child.stop == nil, let parent = child.parent {
            guard let above = world.store.job(parent.job) else {
                return world.fail(10, "Job \(job.id) starts below job \(parent.job), which is gone.")
            }
            // Later rounds cancel the descendants of jobs stopped in this round.
            if !touched.contains(above.id) {
                world.expect(
                    !above.state.isTerminal && !above.isRemoving && (above.stop == nil || above.isAtFinally)
                        && above.link == parent.link, 9,
                    "Job \(job.id) starts below job \(above.id), which is over or stopped.")
            }
            child = above
        }
    }

    /// Checks a list's concurrency, except for `finally` links of stopped children.
    private func checkGate(of job: JobRow, _ world: World) {
        guard let parent = job.parent, let list = world.store.list(of: parent.job), list.id == parent.list,
            let concurrency = list.concurrency, job.stop == nil
        else { return }
        let running = world.runs.count { run in
            run.order.job.parent?.list == list.id && run.order.job.parent?.job == parent.job
                && run.order.job.stop == nil && run.live.hasSlot
        }
        world.expect(
            running + 1 <= concurrency, 4,
            "\(running + 1) children of job \(parent.job) run, which lets \(concurrency) run at once.")
    }

    func permits(_ host: String, adding: (owner: UInt32, count: Int)? = nil, _ world: World) {
        var byOwner: [UInt32: Int] = [:]
        for run in world.engine.runs.values where run.live.host == host {
            byOwner[run.live.owner, default: 0] += run.live.permits
        }
        if let adding { byOwner[adding.owner, default: 0] += adding.count }
        let perHost = world.scenario.settings.perHost
        let all = byOwner.values.reduce(0, +)
        world.expect(all <= perHost, 4, "\(all) connections to \(host) are open, and \(perHost) are allowed.")
        let most = share(of: perHost, world)
        if let greediest = byOwner.max(by: { $0.value < $1.value }) {
            world.expect(
                greediest.value <= most, 4,
                "User \(greediest.key) has \(greediest.value) connections to \(host), and \(most) are allowed.")
        }
    }
}
