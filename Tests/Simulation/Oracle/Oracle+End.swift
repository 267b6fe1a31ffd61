import InMemoryStore
import JobCore
import JobModel

/// The end of the daemon, of a damaged row's tree, and of the run.
extension Oracle {
    func daemonDied(_ node: Node) {
        requests = requests.filter { $0.value.node != node.number }
        overSince = [:]
        watches = watches.filter { $0.value.node != node.number }
        over = over.filter { watches[$0] != nil }
        (owed, untold) = ([:], [])
        cleaning = cleaning.filter { $0.value.node != node.number }
        pauses = pauses.filter { $0.key.node != node.number }
        outputs.daemonDied()
        turns.forget()
    }

    /// Excuses the tree of a damaged row, which the core skips, so that the tree may never end.
    func excuse(_ job: JobID, _ world: World) {
        func root(of job: JobID) -> JobID {
            var root = job
            while let parent = world.store.job(root)?.parent { root = parent.job }
            return root
        }
        let damaged = root(of: job)
        var tree: [JobID] = []
        for row in world.store.allJobs where !excused.contains(row.id) && root(of: row.id) == damaged {
            excused.insert(row.id)
            tree.append(row.id)
            if !row.state.isTerminal { unfinished -= 1 }
        }
        // So may the jobs that wait for it.
        for id in tree {
            for dependent in world.store.rows.dependents(of: id)
            where world.store.job(dependent)?.awaits == id && !excused.contains(dependent) {
                excuse(dependent, world)
            }
        }
        // It may be in a window and take a turn without starting.
        if let row = world.store.job(job) { turns.addUnseen(Share(queue: row.queue, owner: row.owner)) }
    }

    /// Checks the final state.
    func end(_ world: World) {
        for node in world.nodes {
            world.node = node
            if let core = world.core { compare(core, world) }
            world.expect(world.engine.runs.isEmpty, 4, "\(world.engine.runs.count) runs have not ended.")
            world.expect(world.core?.inspection.slots.isEmpty ?? true, 4, "Slots are taken by no run.")
            world.expect(world.core?.inspection.permits.isEmpty ?? true, 4, "Permits are taken by no run.")
        }
        world.expect(
            unfinished == 0, 3,
            "\(unfinished) jobs have not ended: \(unfinishedJobs(world)); slots \(world.core?.inspection.slots ?? [:]), "
                + "permits \(world.core?.inspection.permits ?? [:]), runs \(world.engine.runs.values.map { "\($0.state) \($0.live.run.number) of \($0.live.job)" })"
        )
        world.expect(requests.isEmpty, 7, "Request \(requests.keys.min() ?? 0) was not answered.")
        for work in world.store.work.values {
            world.fail(10, "The work \(work.kind) of job \(work.job) was not done.")
        }
        for list in world.store.lists.values where !excused.contains(list.job) {
            world.fail(10, "The list of job \(list.job) was not closed.")
        }
        for (job, link) in world.store.rows.checkpointOwners {
            world.expect(
                world.store.job(job) != nil, 10, "Link \(link) of job \(job) has a checkpoint, and the job is gone.")
        }
        for (job, _) in world.store.rows.templateOwners {
            world.expect(world.store.job(job) != nil, 10, "A list of job \(job) has a template, and the job is gone.")
        }
        for row in world.store.allJobs {
            world.figures.jobsByEnd[row.state, default: 0] += 1
            let dependents = world.store.rows.dependents(of: row.id)
            world.expect(
                row.hasDependents == !dependents.isEmpty || world.store.isDamaged(row.id), 10,
                "Job \(row.id) is kept for \(dependents.count) jobs.")
            for dependent in dependents {
                world.expect(
                    world.store.job(dependent).map { !$0.state.isTerminal } ?? excused.contains(row.id), 10,
                    "Job \(row.id) is kept for job \(dependent), which is over.")
            }
            if let parent = row.parent, !excused.contains(row.id) {
                world.expect(
                    world.store.job(parent.job) != nil, 10, "Job \(row.id) is below job \(parent.job), which is gone.")
            }
        }
    }

    private func unfinishedJobs(_ world: World) -> String {
        world.store.allJobs.filter { !$0.state.isTerminal && !excused.contains($0.id) }.prefix(3).map { row in
            "job \(row.id) (\(row.state), waiting for \(row.waiting), link \(row.link), host \(row.host ?? ""), queue \(row.queue), user \(row.owner), parent \(row.parent?.job ?? 0))"
        }.joined(separator: ", ")
    }
}
