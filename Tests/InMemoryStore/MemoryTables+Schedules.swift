import JobModel

extension MemoryTables {
    mutating func set(_ schedule: Schedule, spec: JSON) {
        schedules.set(schedule.key, StoredSchedule(schedule, spec: spec))
    }

    /// Stores what has become of a schedule with the job that it submits, both or none of them.
    mutating func advance(_ schedule: Schedule, _ job: Job?) -> [Submission] {
        guard var stored = schedules[schedule.key] else { return [] }
        stored.schedule = schedule
        var submissions: [Submission] = []
        if let job {
            submissions = [submit(job)]
            switch submissions[0] {
            case .conflict: return submissions
            case .created(let id), .joined(let id, _): stored.schedule.lastJob = id
            }
        }
        schedules.set(schedule.key, stored)
        return submissions
    }

    func schedule(_ key: ScheduleKey) -> [StoredSchedule] {
        schedules[key].map { [withState($0)] } ?? []
    }

    /// The schedules without their specs.
    var plainSchedules: [StoredSchedule] {
        schedules.rows().map { row in
            var stored = withState(row.value)
            stored.spec = nil
            return stored
        }
    }

    func schedules(after key: ScheduleKey?, owner: UInt32?, limit: Int) -> [StoredSchedule] {
        let start = max(key ?? ScheduleKey(owner: 0, name: ""), ScheduleKey(owner: owner ?? 0, name: ""))
        var page: [StoredSchedule] = []
        for row in schedules.rows(from: start) where row.key != key {
            guard page.count < limit, owner == nil || row.key.owner == owner, !StoredSchedule.isFull(page) else {
                break
            }
            var stored = withState(row.value)
            if stored.schedule.specSize > StoredSchedule.longestShownSpec { stored.spec = nil }
            page.append(stored)
        }
        return page
    }

    private func withState(_ stored: StoredSchedule) -> StoredSchedule {
        var stored = stored
        stored.lastState = stored.schedule.lastJob.flatMap { rows[$0]?.job.state }
        return stored
    }
}
