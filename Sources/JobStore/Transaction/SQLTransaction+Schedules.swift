package import JobModel

extension SQLTransaction {
    package func schedule(_ key: ScheduleKey) throws(StoreError) -> ScheduleRow? {
        try schedules("owner = ?1 AND name = ?2", [key.owner, name(key.name)]).first
    }

    /// Keeps the stored spec if it is given none.
    package func put(_ schedule: ScheduleRow, spec: [UInt8]?) throws(StoreError) {
        willChange(.schedules)
        var values = ScheduleColumns.values(schedule, spec: spec)
        values[1] = name(schedule.schedule.key.name)
        try write(ScheduleColumns.insert, values)
    }

    package func removeSchedule(_ key: ScheduleKey) throws(StoreError) {
        willChange(.schedules)
        try write("DELETE FROM schedules WHERE owner = ?1 AND name = ?2", [key.owner, name(key.name)])
    }

    package func dueSchedules(at time: Timestamp, limit: Int) throws(StoreError) -> [ScheduleRow] {
        try schedules("next IS NOT NULL AND next <= ?1 ORDER BY next, owner, name", [time], atMost: limit)
    }

    package func schedules(after key: ScheduleKey?, limit: Int) throws(StoreError) -> [ScheduleRow] {
        let start: [(any Bindable)?] = [key?.owner ?? 0, name(key?.name ?? "")]
        return try schedules("(owner, name) > (?1, ?2) ORDER BY owner, name", start, atMost: limit)
    }

    package func schedule(ofLastJob job: JobID) throws(StoreError) -> ScheduleRow? {
        try schedules("last_job = ?1 ORDER BY owner, name", [job]).first
    }

    package func scheduleCounts() throws(StoreError) -> [UInt32: CountValue] {
        let select = "SELECT owner, count(*), CAST(sum(size) AS bigint) FROM schedules GROUP BY owner"
        let counts = try rows(select, [], atMost: .max) { row throws(StoreError) in
            UInt32(exactly: row.integer(0)).map { ($0, CountValue(jobs: Int(row.integer(1)), bytes: row.integer(2))) }
        }
        return Dictionary(counts) { $1 }
    }

    /// The schedules that fit a condition, without damaged ones.
    private func schedules(
        _ condition: String, _ values: [(any Bindable)?], atMost limit: Int = 1
    ) throws(StoreError) -> [ScheduleRow] {
        try rows("\(ScheduleColumns.select) WHERE \(condition)", values, atMost: limit) { row throws(StoreError) in
            damage.legible(ScheduleColumns.name(row), try ScheduleColumns.row(row))
        }
    }
}
