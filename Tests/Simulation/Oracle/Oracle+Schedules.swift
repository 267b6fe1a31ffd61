import InMemoryStore
import JobModel
import JobCore

/// Invariants of schedules: one job for each time, not early, soon after it, and never twice.
extension Oracle {
    /// Seconds after which a time counts as missed, if its successor is not near.
    private static let lateness = 60.0
    /// Seconds within which an unhindered daemon submits the job of a time; expanding the spec takes part of them.
    private static let promptness = 20.0

    /// Checks a round's changes of schedules; `inputs` are the inputs of the round.
    func checkSchedules(_ inputs: [CoreInput], _ world: World) {
        var set: Set<ScheduleKey> = []
        for case .request(_, let request, _) in inputs {
            switch request {
            case .setSchedule(let new): set.insert(new.schedule.key)
            case .removeSchedule(let key), .suspendSchedule(let key, _): set.insert(key)
            default: break
            }
        }
        for change in world.store.scheduleChanges {
            guard let old = change.before, let new = change.after, !set.contains(change.id) else {
                continue
            }
            check(old, new, world)
        }
        for change in changes where change.before == nil {
            guard let row = change.after, let key = row.key, key.hasPrefix(ScheduleKey.jobKeyPrefix) else { continue }
            world.figures.scheduled += 1
            let name = key.split(separator: ":", maxSplits: 2).dropFirst().first.map(String.init) ?? ""
            let schedule = world.store.rows.allSchedules.first {
                $0.key == ScheduleKey(owner: row.owner, name: name)
            }
            // It may have been removed since.
            guard let schedule, !set.contains(schedule.key) else { continue }
            world.expect(
                schedule.lastJob == row.id && schedule.lastTime.map { schedule.key.jobKey(at: $0) } == key, 2,
                "Job \(row.id) was submitted as \(key), which is not the last time of its schedule.")
        }
    }

    private func check(_ old: Schedule, _ new: Schedule, _ world: World) {
        func expect(_ condition: Bool, _ what: @autoclosure () -> String) {
            world.expect(condition, 2, "Schedule \(new.key.name) of user \(new.key.owner) \(what()).")
        }
        let now = world.clock.wall
        let due =
            new.doneUntil == now && !old.isSuspended
            ? old.timing.last(Schedule.mostWaiting, after: floor(of: old), upTo: now, since: old.setAt, in: .utc) : []
        let missed = due.prefix { time in
            let next = old.timing.next(after: time, since: old.setAt, in: .utc)
            let patience = next.map { min(Self.lateness, $0.seconds(since: time) / 2) } ?? Self.lateness
            return time <= world.startedAt || now.seconds(since: time) > patience
        }
        let caughtUp: [Timestamp]
        switch old.catchUp {
        case .none: caughtUp = []
        case .last: caughtUp = missed.suffix(1)
        case .all: caughtUp = Array(missed)
        }
        let times = caughtUp + due[missed.endIndex...]
        let submitted = new.submitted - old.submitted
        let skipped = new.skipped - old.skipped
        let waiting = new.waiting.count - old.waiting.count
        expect(
            submitted + skipped + waiting == times.count,
            "had \(times.count) times, \(submitted) submitted, \(skipped) skipped, \(waiting) waiting")
        expect((0...1).contains(submitted) && skipped >= 0, "submitted \(submitted) jobs and skipped \(skipped)")
        if old.overlap == .skip, old.catchUp != .all { expect(waiting <= 0, "lets times wait that it skips") }
        if old.overlap == .queue, new.waiting.count < Schedule.mostWaiting {
            // One job may have been refused.
            expect(skipped <= 1, "skipped \(skipped) times that wait")
        }
        for time in due where isLate(time, world) {
            world.fail(3, "Schedule \(new.key.name) of user \(new.key.owner) came to its time \(time) at \(now) only.")
        }
        guard submitted > 0 else {
            return expect(new.lastTime == old.lastTime, "changed its last time and submitted nothing")
        }
        guard let time = new.lastTime else { return expect(false, "submitted a job for no time") }
        expect(old.lastTime.map { $0 < time } ?? true, "submitted a job for \(time) after one for a later time")
        expect(
            time == (old.waiting + times).first, "submitted a job for \(time), which is not the next of its times")
        expect(time <= now || old.waiting.contains(time), "submitted a job for \(time), and it is \(now)")
        if let last = old.lastJob, !world.store.isDamaged(last), let row = world.store.job(last) {
            expect(
                row.state.isTerminal || retries.contains(last), "submitted a job while its job \(last) is not finished")
        }
    }

    /// Returns the time up to which a schedule's times were handled.
    private func floor(of schedule: Schedule) -> Timestamp {
        [schedule.doneUntil, schedule.lastTime, schedule.waiting.last].compactMap(\.self).max() ?? schedule.doneUntil
    }

    /// Returns whether a time passed a while ago and nothing has hindered the daemon since.
    private func isLate(_ time: Timestamp, _ world: World) -> Bool {
        let age = world.clock.wall.seconds(since: time)
        let unhindered = Double(world.clock.elapsed - world.unhinderedSince) / Double(SimulatedClock.second)
        return age > Self.promptness && unhindered > age + Self.promptness
    }

    /// Checks that every time that passed was handled.
    func lookForPassedTimes(_ world: World) {
        for schedule in world.store.rows.allSchedules where !schedule.isSuspended {
            guard let next = schedule.timing.next(after: floor(of: schedule), since: schedule.setAt, in: .utc) else {
                continue
            }
            world.expect(
                !isLate(next, world), 3,
                "The time \(next) of schedule \(schedule.key.name) of user \(schedule.key.owner) has passed.")
        }
    }
}
