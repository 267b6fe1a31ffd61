import JobCore
import JobModel

/// Each time of a schedule has one job, or is counted (invariant 11).
extension Oracle {
    /// What is known of a schedule.
    struct KnownSchedule {
        /// As it is stored.
        var row: Schedule
        /// The times that jobs were submitted for.
        var times: Set<Timestamp> = []
    }

    func scheduleSet(_ row: Schedule, _ world: World) {
        let old = schedules[row.key]
        if let old = old?.row {
            if row.submitted != old.submitted || row.lastTime != old.lastTime || row.skipped < old.skipped {
                world.violate(11, "the counts of the schedule \(row.key) did not survive its replacement")
            }
        } else if schedules.keys.count(where: { $0.owner == row.key.owner }) >= settings.limits.schedulesPerUser {
            world.violate(11, "user \(row.key.owner) has too many schedules")
        }
        schedules[row.key] = KnownSchedule(row: row, times: old?.times ?? [])
        storedSchedules.insert(row.key)
    }

    func scheduleAdvanced(_ row: Schedule, _ job: Job?, _ submissions: [Submission], _ world: World) {
        guard var known = schedules[row.key] else {
            if !submissions.isEmpty { world.violate(11, "a schedule that was removed submits a job") }
            return
        }
        let old = known.row
        var row = row
        if let job {
            guard let submission = submissions.first else {
                return world.violate(11, "a job of a schedule got no answer")
            }
            switch submission {
            case .conflict: return
            case .created(let id), .joined(let id, _): row.lastJob = id
            }
            checkJob(job, row, known, world)
            if let time = row.lastTime { known.times.insert(time) }
        } else if row.isSuspended == old.isSuspended, row.skipped == old.skipped, row.waiting == old.waiting {
            world.violate(11, "a time of the schedule \(row.key) passes without a job, and is not counted")
        }
        if row.waiting.count > Schedule.mostWaiting { world.violate(11, "\(row.waiting.count) times wait") }
        if zip(row.waiting, row.waiting.dropFirst()).contains(where: { $0 >= $1 }) {
            world.violate(11, "a time of the schedule \(row.key) waits twice")
        }
        known.row = row
        schedules[row.key] = known
    }

    private func checkJob(_ job: Job, _ row: Schedule, _ known: KnownSchedule, _ world: World) {
        checked.scheduled += 1
        let old = known.row
        guard let time = row.lastTime, job.spec.key == row.key.jobKey(at: time) else {
            return world.violate(11, "a job of the schedule \(row.key) has the key of another time")
        }
        if known.times.contains(time) { world.violate(11, "the schedule \(row.key) submits twice for \(time)") }
        if let last = old.lastTime, time <= last {
            world.violate(11, "the schedule \(row.key) goes back from \(last) to \(time)")
        }
        // What waits came when the clock said so.
        if time > latestWall, !old.waiting.contains(time) {
            world.violate(11, "the schedule \(row.key) is too early for \(time)")
        }
        if old.isSuspended { world.violate(11, "the schedule \(row.key) is suspended and submits a job") }
        if row.submitted != old.submitted + 1 { world.violate(11, "a job of \(row.key) is not counted") }
        if !isTime(time, of: old) { world.violate(11, "\(time) is no time of the schedule \(row.key)") }
        if let id = old.lastJob, let before = jobs[id], !before.isOver, before.generation == 0,
            !before.retries.isDue
        {
            world.violate(11, "the schedule \(row.key) submits a job while job \(id) is not finished")
        }
    }

    /// Whether it is a time of the schedule, by another calculation than the core's.
    private func isTime(_ time: Timestamp, of row: Schedule) -> Bool {
        switch row.timing {
        case .every(let period): return (time.milliseconds - row.setAt.milliseconds) % period == 0
        case .calendar(let text, _, let zone):
            guard time.milliseconds % 60_000 == 0 else { return false }
            guard zone == "UTC" else { return true }
            let days = (time.milliseconds - time.milliseconds % 86_400_000) / 86_400_000
            let (minute, hour) = (time.milliseconds / 60_000 % 60, time.milliseconds / 3_600_000 % 24)
            let weekday = (days + 4) % 7
            switch text {
            case "*/20 * * * *": return minute % 20 == 0
            case "0 * * * *": return minute == 0
            case "30 2 * * *": return minute == 30 && hour == 2
            case "15 */3 * * *": return minute == 15 && hour % 3 == 0
            case "@daily": return minute == 0 && hour == 0
            case "0 6,18 * * mon-fri": return minute == 0 && (hour == 6 || hour == 18) && (1...5).contains(weekday)
            default: return minute == 7 && [1, 3, 5].contains(hour)
            }
        }
    }

    /// Nothing waits whose job before is over, and no time is left lying. `reference` is when all was last set right.
    func checkSchedules(since reference: Int64, _ world: World) {
        let passed = Double(world.clock.elapsed - reference) / 1e9
        guard passed > 200, changingSchedules == 0 else { return }
        let wall = world.clock.wall
        for known in schedules.values where !known.row.isSuspended {
            let row = known.row
            if !row.waiting.isEmpty, let id = row.lastJob, jobs[id]?.isOver ?? true {
                world.violate(11, "times of the schedule \(row.key) wait, and job \(id) is over")
            }
            guard case .every(let period) = row.timing, wall > row.setAt else { continue }
            let count = (wall.milliseconds - 60_000 - row.setAt.milliseconds) / period
            let due = Timestamp(milliseconds: row.setAt.milliseconds + count * period)
            // Only what came while all was well, and the clock shows nothing else than it did.
            guard wall.seconds(since: due) < passed - 60, due > row.setAt, row.doneUntil <= wall else { continue }
            checked.schedules += 1
            if row.doneUntil < due, row.lastTime.map({ $0 < due }) ?? true, row.waiting.last.map({ $0 < due }) ?? true {
                world.violate(11, "the schedule \(row.key) was due at \(due), and nothing was done: \(row)")
            }
        }
    }
}
