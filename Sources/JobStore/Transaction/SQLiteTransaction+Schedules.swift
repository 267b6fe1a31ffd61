import JobModel

extension SQLiteTransaction {
    func schedule(_ key: ScheduleKey) throws(StoreError) -> ScheduleRow? {
        try schedules("owner = ?1 AND name = ?2", key.owner, key.name).first
    }

    func put(_ schedule: ScheduleRow, spec: [UInt8]?) throws(StoreError) {
        try statement(ScheduleColumns.insert, ScheduleColumns.values(schedule, spec: spec)).run()
    }

    func removeSchedule(_ key: ScheduleKey) throws(StoreError) {
        try statement("DELETE FROM schedules WHERE owner = ?1 AND name = ?2", key.owner, key.name).run()
    }

    func dueSchedules(at time: Timestamp, limit: Int) throws(StoreError) -> [ScheduleRow] {
        try schedules("next IS NOT NULL AND next <= ?1 ORDER BY next, owner, name", time, atMost: limit)
    }

    func schedules(after key: ScheduleKey?, limit: Int) throws(StoreError) -> [ScheduleRow] {
        try schedules(
            "(owner, name) > (?1, ?2) ORDER BY owner, name", key?.owner ?? 0, key?.name ?? "", atMost: limit)
    }

    func schedule(ofLastJob job: JobID) throws(StoreError) -> ScheduleRow? {
        try schedules("last_job = ?1 ORDER BY owner, name", job).first
    }

    func scheduleCounts() throws(StoreError) -> [UInt32: CountValue] {
        let counts = try statement("SELECT owner, count(*), sum(size) FROM schedules GROUP BY owner").rows {
            row throws(StoreError) in
            UInt32(exactly: row.integer(0)).map {
                ($0, CountValue(jobs: Int(row.integer(1)), bytes: row.integer(2)))
            }
        }
        return Dictionary(counts) { $1 }
    }

    /// The schedules that fit a condition, without damaged ones.
    private func schedules(
        _ condition: String, _ values: (any Bindable)?..., atMost limit: Int = 1
    ) throws(StoreError) -> [ScheduleRow] {
        let select = try statement("\(ScheduleColumns.select) WHERE \(condition)", values)
        return try select.rows(atMost: limit) { row throws(StoreError) in
            damage.legible(.other(ScheduleColumns.name(row))) { () throws(DamagedRow) in try ScheduleColumns.row(row) }
        }
    }
}
