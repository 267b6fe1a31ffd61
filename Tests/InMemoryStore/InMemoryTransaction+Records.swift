import JobModel

/// Records beside the jobs: schedules, queue settings, counts and leftover work.
extension InMemoryTransaction {
    // MARK: Schedules

    func schedule(_ key: ScheduleKey) throws(StoreError) -> Schedule? {
        try check()
        return tables.rows.schedules[key]
    }

    func put(_ schedule: Schedule, spec: [UInt8]?) throws(StoreError) {
        try check()
        tables.setSchedule(schedule.key, schedule)
        if let spec { tables.rows.specs.place(schedule.key, spec) }
    }

    func removeSchedule(_ key: ScheduleKey) throws(StoreError) {
        try check()
        tables.setSchedule(key, nil)
        tables.rows.specs.place(key, nil)
    }

    func dueSchedules(at time: Timestamp, limit: Int) throws(StoreError) -> [Schedule] {
        try check()
        return tables.schedulesDue.rows().lazy.map(\.key).prefix { $0.number <= time.milliseconds }
            .prefix(max(0, limit)).compactMap { tables.rows.schedules[$0.key] }
    }

    func schedules(after key: ScheduleKey?, limit: Int) throws(StoreError) -> [Schedule] {
        try check()
        let behind = tables.rows.schedules.rows(from: key).lazy.drop { $0.key == key }
        return behind.prefix(max(0, limit)).map(\.value)
    }

    func schedule(ofLastJob job: JobID) throws(StoreError) -> Schedule? {
        try check()
        let start = NumberedSchedule(number: job, key: ScheduleKey(owner: 0, name: ""))
        let first = tables.schedulesByJob.rows(from: start).first { _ in true }
        return first.flatMap { $0.key.number == job ? tables.rows.schedules[$0.key.key] : nil }
    }

    func scheduleCounts() throws(StoreError) -> [UInt32: CountValue] {
        try check()
        var counts: [UInt32: CountValue] = [:]
        for (key, row) in tables.rows.schedules.rows() {
            counts[key.owner, default: CountValue()].jobs += 1
            counts[key.owner, default: CountValue()].bytes += row.storedSize
        }
        return counts
    }

    // MARK: Queues and counts

    func queues() throws(StoreError) -> [String: QueueOverrides] {
        try check()
        return tables.rows.allQueues
    }

    func put(_ overrides: QueueOverrides?, ofQueue name: String) throws(StoreError) {
        try check()
        tables.setQueue(Name(name), overrides)
    }

    func counts() throws(StoreError) -> [CountKey: CountValue] {
        try check()
        return tables.rows.counts
    }

    func put(_ counts: [CountKey: CountValue]) throws(StoreError) {
        try check()
        for (key, count) in counts { tables.setCount(key, count.jobs == 0 ? nil : count) }
    }

    // MARK: Work

    func work(after: Int64, limit: Int) throws(StoreError) -> [WorkRow] {
        try check()
        return tables.rows.work.rows(from: after &+ 1).lazy.map(\.value).prefix(max(0, limit)).map(\.self)
    }

    func nextWork(ofOwnerAbove owner: UInt32?) throws(StoreError) -> WorkRow? {
        try check()
        let start = NumberedID(number: owner.map { Int64($0) + 1 } ?? 0, id: .min)
        let first = tables.workByOwner.rows(from: start).first { _ in true }
        return first.flatMap { tables.rows.work[$0.key.id] }
    }

    func hasWork(_ kind: WorkRow.Kind, of job: JobID) throws(StoreError) -> Bool {
        try check()
        let first = tables.workByJob.rows(from: JobWork(kind: kind, job: job, id: .min)).first { _ in true }
        return first.map { $0.key.kind == kind && $0.key.job == job } ?? false
    }

    func add(_ work: WorkRow) throws(StoreError) -> Int64 {
        try check()
        var work = work
        tables.rows.numbers.work += 1
        work.id = tables.rows.numbers.work
        tables.setWork(work.id, work)
        return work.id
    }

    func update(_ work: WorkRow) throws(StoreError) {
        try check()
        if tables.rows.work[work.id] != nil { tables.setWork(work.id, work) }
    }

    func endWork(_ id: Int64) throws(StoreError) {
        try check()
        tables.setWork(id, nil)
    }
}
