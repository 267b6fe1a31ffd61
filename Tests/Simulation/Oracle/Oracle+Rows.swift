import InMemoryStore
import JobModel
import JobCore

/// Invariants of each row that a round changed.
extension Oracle {
    /// Counts a change; to be called for all of a round, before ``check(_:_:_:_:)`` excuses jobs.
    func count(_ id: JobID, _ old: JobRow?, _ new: JobRow?) {
        if old == nil, let parent = new?.parent, excused.contains(parent.job) { excused.insert(id) }
        if excused.contains(id) { return }
        if let old, !old.state.isTerminal { unfinished -= 1 }
        if let new, !new.state.isTerminal { unfinished += 1 }
    }

    func check(_ id: JobID, _ old: JobRow?, _ new: JobRow?, _ world: World) {
        guard let new else { return removed(id, old, world) }
        checkForm(new, world)
        if new.state.isTerminal, old?.state.isTerminal != true { ended(new, world) }
        if let target = new.awaits, excused.contains(target), !excused.contains(id) { excuse(id, world) }
        guard let old else { return }
        checkWhatStays(old, new, world)
        if new.run == nil, old.run?.life == world.life { unrepeatable[id] = nil }
        // It may have ended and been retried in the same round.
        let isRetried = retries.contains(id)
        if !new.state.isTerminal && (old.state.isTerminal || isRetried) || old.state.isTerminal && isRetried {
            world.expect(new.parent == nil, 2, "Job \(id) is a child, and was retried.")
            unrepeatable[id] = nil
            return
        }
        checkWait(old, new, world)
        world.expect(
            new.outcomes.starts(with: old.outcomes), 2, "The outcome of a link of job \(id) changed or is gone.")
        world.expect(
            zip(new.outcomes, new.outcomes.dropFirst()).allSatisfy { $0.link < $1.link }, 2,
            "A link of job \(id) ended twice.")
        if old.state.isTerminal {
            world.expect(
                new.state == old.state && new.carried == old.carried && new.outcomes == old.outcomes, 2,
                "Job \(id) was over, and its end changed.")
        }
        if new.link == old.link {
            world.expect(
                abs(new.attempt - old.attempt) <= 1, 2,
                "The attempts of job \(id) went from \(old.attempt) to \(new.attempt).")
        } else {
            world.expect(new.link > old.link, 2, "Job \(id) went from link \(old.link) to link \(new.link).")
        }
    }

    private func checkWhatStays(_ old: JobRow, _ new: JobRow, _ world: World) {
        world.expect(new.version > old.version, 7, "The version of job \(new.id) fell or stayed.")
        world.expect(
            new.owner == old.owner && new.key == old.key && new.parent == old.parent && new.createdAt == old.createdAt
                && (new.terms == old.terms || changed.contains(new.id)), 1,
            "What was submitted of job \(new.id) changed.")
        world.expect(
            world.isAlone || new.node != nil || new.checkpointSize == 0 || old.checkpointSize > 0, 5,
            "Job \(new.id) has a part, and may go on at another node.")
        if old.state == .held, old.run != nil, new.run == nil, new.state == .held {
            world.expect(new.attempt == old.attempt - 1, 2, "Job \(new.id) was held, and that counts as an attempt.")
        }
        world.expect(
            old.state != .held || old.run == nil || new.state != .queued || new.link > old.link, 3,
            "Job \(new.id) was released while its run was stopping.")
    }

    /// Checks that an unfinished job waits for exactly one thing.
    private func checkForm(_ row: JobRow, _ world: World) {
        func expect(_ condition: Bool, _ what: String) {
            world.expect(condition, 3, "Job \(row.id) is \(row.state), and \(what).")
        }
        // Another node's life may be over, with its runs still to be taken over.
        let isLiving = row.run.map { $0.life == world.life || !world.isAlone } ?? false
        let list = world.store.list(of: row.id)
        switch row.state {
        case .scheduled:
            expect(row.run == nil, "has a run")
            expect(row.due != nil || row.notBefore != nil, "waits for no time")
        case .queued:
            expect(row.run == nil, "has a run")
            expect(row.due == nil, "waits for a time")
            switch row.waiting {
            case .gate: expect(row.parent != nil, "waits for a gate, and has no parent")
            case .cleaning:
                expect(world.store.work.values.contains { $0.job == row.id }, "waits for work that there is none of")
            case .nothing: break
            case .suspect: expect(row.isSuspect, "waits for suspects, and is none")
            case .children, .timer, .timeout, .job: expect(false, "waits for \(row.waiting)")
            }
        case .held:
            expect(row.run == nil || isLiving, "has a run of another life")
            expect(row.due == nil && row.notBefore == nil || row.run == nil, "waits for a time")
            expect(![.children, .timer, .timeout, .job].contains(row.waiting), "waits for \(row.waiting)")
        case .running:
            switch row.waiting {
            case .nothing:
                expect(isLiving, "has no run of this life")
                expect(row.isSuspect == (row.due != nil), "waits for a time")
            case .children:
                expect(list?.link == row.link, "has no list")
                expect((row.run != nil) == (list?.phase == .gathering), "has a run that its list has no need of")
                expect(list?.phase != .making, "waits for children that are being made")
            case .timer, .timeout:
                expect(row.run == nil && row.due != nil, "waits for no time, or has a run")
            case .job: expect(row.awaits != nil, "waits for no job")
            case .gate, .cleaning, .suspect: expect(false, "waits for \(row.waiting)")
            }
        case .succeeded, .failed, .cancelled:
            expect(row.run == nil && row.due == nil && row.deadline == nil, "waits for something")
            expect(row.finishedAt != nil, "has no end")
            expect(list == nil, "has an open list")
        }
        if let list, row.state != .queued || list.phase != .making {
            expect(list.made >= list.ended && list.made <= list.total, "its list has ended more than were made")
            if list.phase == .gathering { expect(list.unfinished == 0, "its list is over before its children") }
        }
        expect((row.waiting == .job) == (row.awaits != nil), "names a job for which it does not wait")
        expect(row.checkpointSize >= 0 && row.attempt >= 0, "a count of it is below zero")
        expect(!row.followsPart || row.node != nil && row.checkpointSize > 0, "it follows a part that is not there")
    }

    private func removed(_ id: JobID, _ old: JobRow?, _ world: World) {
        guard let old else { return }
        if !old.state.isTerminal { oweEnd(of: old, world) }
        guard let parent = old.parent else {
            checkDependents(of: id, world)
            // An unfinished job may have ended in the same round.
            guard !removals.contains(id), old.state.isTerminal else { return }
            // Retention: too old, too many or too large.
            let settings = world.scenario.settings
            let age = old.finishedAt.map { world.clock.wall.seconds(since: $0) } ?? 0
            world.expect(
                age >= settings.retentionAge - 1 || old.isRemoving
                    || finished.jobs > settings.retentionCount || finished.bytes > settings.retentionBytes
                    || mayMakeRoom(old.owner, settings), 1,
                "Job \(id) was purged after \(Int(age)) seconds, with \(finished.jobs) finished ones of \(finished.bytes) bytes."
            )
            return
        }
        guard let above = world.store.job(parent.job) else { return }
        world.expect(
            above.isRemoving || world.store.list(of: above.id)?.id != parent.list || above.state.isTerminal
                || isBelowRemoved(above, world), 1,
            "Job \(id) was removed from below job \(above.id), which goes on.")
    }

    /// Whether an owner stores so much that the oldest finished jobs go.
    private func mayMakeRoom(_ owner: UInt32, _ settings: CoreSettings) -> Bool {
        let stored = counts.reduce(Int64(0)) { $1.key.owner == owner ? $0 + $1.value.bytes : $0 }
        return settings.storedPerUser < 1 << 20 || stored > settings.storedPerUser / 2
    }

    private func isBelowRemoved(_ row: JobRow, _ world: World) -> Bool {
        var next: JobRow? = row
        while let job = next {
            if job.isRemoving || job.waiting == .cleaning { return true }
            next = job.parent.flatMap { world.store.job($0.job) }
        }
        return false
    }

    private func ended(_ row: JobRow, _ world: World) {
        for number in row.plan.links.indices where row.plan.isFinally(number + 1) {
            world.expect(
                row.outcomes.contains { $0.link == number + 1 }, 9,
                "Job \(row.id) is over, and its finally link \(number + 1) did not run.")
        }
        world.expect(
            row.state != .succeeded || row.outcomes.last?.link == row.link, 2,
            "Job \(row.id) succeeded, and its last link has no outcome.")
        oweEnd(of: row, world)
    }

    private func oweEnd(of row: JobRow, _ world: World) {
        for (id, watch) in watches where watch.isOwedEnd(of: row) {
            if watch.node == world.node.number {
                owed[id, default: []].insert(row.id)
            } else {
                owedElsewhere[id, default: []].insert(row.id)
            }
        }
    }

    func isOpen(_ job: JobID, _ world: World) -> Bool {
        !world.store.isDamaged(job) && world.store.job(job).map { !$0.state.isTerminal && !$0.isRemoving } ?? false
    }

    /// Checks that all children of a list are over when its outcome is composed.
    func gathers(_ list: ListRow, _ world: World) {
        world.expect(list.phase == .gathering && list.unfinished == 0, 3, "The list of job \(list.job) is not over.")
        world.expect(
            list.made == list.total || list.decided != nil, 3,
            "The list of job \(list.job) has \(list.made) of \(list.total) children.")
    }
}
