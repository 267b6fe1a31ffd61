import InMemoryStore
import JobCore
import JobModel

/// Invariants of jobs that wait for others.
extension Oracle {
    /// Checks that a wait ends after its job, and with its outcome.
    func checkWait(_ old: JobRow, _ new: JobRow, _ world: World) {
        guard old.waiting == .job, let id = old.awaits, new.stop == nil,
            let ended = new.outcomes.first(where: { $0.link == old.link })
        else { return }
        // The wait's own failures.
        if let kind = ended.error?.kind, [.timeout, .storage, .tooLarge].contains(kind) { return }
        // Nothing keeps the other job from here on.
        guard let target = world.store.job(id), !world.store.isDamaged(id), !retries.contains(id) else { return }
        world.expect(target.state.isTerminal, 2, "Job \(old.id) waited for job \(id), which goes on.")
        let kind = target.state == .succeeded ? nil : target.carried?.error?.kind ?? .cancelled
        world.expect(
            ended.error?.kind == kind, 2, "Job \(old.id) waited for job \(id), and did not get its outcome.")
        guard new.link == old.link, new.state == .succeeded, !new.isAtFinally else { return }
        world.expect(
            new.carried?.size == target.carried?.size, 2, "Job \(old.id) waited for job \(id), and has another result.")
    }

    /// Checks that a job's result is there as long as it is being linked.
    func adopts(_ value: StoredValue, _ job: JobRow, _ world: World) {
        guard let id = job.awaits, let row = world.store.job(job.id), row.run == job.run else { return }
        world.expect(
            world.store.job(id)?.carried == .success(value), 1,
            "The result of job \(id) is gone, and job \(job.id) needs it.")
    }

    /// Checks that nothing unfinished depends on a removed root job.
    func checkDependents(of id: JobID, _ world: World) {
        let dependent = world.store.rows.dependents(of: id).first { dependent in
            world.store.job(dependent).map { !$0.state.isTerminal } ?? false && !excused.contains(dependent)
        }
        world.expect(dependent == nil, 1, "Job \(id) was removed, and job \(dependent ?? 0) depends on it.")
    }

    /// Whether the job that a job waits for has not ended.
    func isAwaitable(_ row: JobRow, _ world: World) -> Bool {
        guard let id = row.awaits, let target = world.store.job(id) else { return false }
        return !target.state.isTerminal || excused.contains(id)
    }
}
