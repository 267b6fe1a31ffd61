package import JobModel

extension SQLTransaction {
    package func schedule(_ key: ScheduleKey) throws(StoreError) -> Schedule? {
        try schedules("owner = ?1 AND name = ?2", [key.owner, Self.name(key.name)]).first
    }

    /// Keeps the stored spec if it is given none.
    package func put(_ schedule: Schedule, spec: [UInt8]?) throws(StoreError) {
        willChange(.schedules)
        let name = Self.name(schedule.key.name)
        try write(ScheduleColumns.insert, ScheduleColumns.values(schedule, name: name, spec: spec))
    }

    package func removeSchedule(_ key: ScheduleKey) throws(StoreError) {
        willChange(.schedules)
        try write("DELETE FROM schedules WHERE owner = ?1 AND name = ?2", [key.owner, Self.name(key.name)])
    }

    package func dueSchedules(at time: Timestamp, limit: Int) throws(StoreError) -> [Schedule] {
        try schedules("next IS NOT NULL AND next <= ?1 ORDER BY next, owner, name", [time], atMost: limit)
    }

    package func schedules(after key: ScheduleKey?, limit: Int) throws(StoreError) -> [Schedule] {
        let start: [(any Bindable)?] = [key?.owner ?? 0, Self.name(key?.name ?? "")]
        return try schedules("(owner, name) > (?1, ?2) ORDER BY owner, name", start, atMost: limit)
    }

    package func schedule(ofLastJob job: JobID) throws(StoreError) -> Schedule? {
        try schedules("last_job = ?1 ORDER BY owner, name", [job]).first
    }

    package func scheduleCounts() throws(StoreError) -> [UInt32: CountValue] {
        let select = "SELECT owner, count(*), CAST(sum(size) AS bigint) FROM schedules GROUP BY owner"
        let counts = try rows(select, [], atMost: .max) { row in
            UInt32(exactly: row.integer(0)).map { ($0, CountValue(jobs: Int(row.integer(1)), bytes: row.integer(2))) }
        }
        return Dictionary(counts) { $1 }
    }

    /// The schedules that fit a condition, without damaged ones.
    private func schedules(
        _ condition: String, _ values: [(any Bindable)?], atMost limit: Int = 1
    ) throws(StoreError) -> [Schedule] {
        let select = "\(ScheduleColumns.select) WHERE \(condition)"
        return try rows(select, values, atMost: limit, named: { ScheduleColumns.name($0) }) {
            row throws(DamagedRow) in try ScheduleColumns.row(row)
        }
    }
}
