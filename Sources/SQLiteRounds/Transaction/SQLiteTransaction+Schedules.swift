import JobModel

extension SQLiteTransaction {
    func schedule(_ key: ScheduleKey) throws(StoreError) -> ScheduleRow? {
        try check()
        let select = try statement("\(ScheduleColumns.select) WHERE owner = ?1 AND name = ?2")
        ScheduleColumns.bind(key, to: select)
        return try schedules(select, atMost: 1).first
    }

    func scheduleSpec(_ key: ScheduleKey) throws(StoreError) -> [UInt8]? {
        try check()
        let select = try statement("SELECT spec FROM schedule_specs WHERE owner = ?1 AND name = ?2")
        ScheduleColumns.bind(key, to: select)
        return try select.row { row throws(StoreError) in row.bytes(0) }
    }

    func put(_ schedule: ScheduleRow, spec: [UInt8]?) throws(StoreError) {
        try check()
        let insert = try statement(ScheduleColumns.insert)
        ScheduleColumns.bind(schedule, to: insert)
        try insert.run()
        guard let spec else { return }
        let store = try statement("INSERT OR REPLACE INTO schedule_specs (owner, name, spec) VALUES (?1, ?2, ?3)")
        ScheduleColumns.bind(schedule.schedule.key, to: store)
        store.bind(bytes: spec, at: 3)
        try store.run()
    }

    func removeSchedule(_ key: ScheduleKey) throws(StoreError) {
        try check()
        for table in ["schedules", "schedule_specs"] {
            let delete = try statement("DELETE FROM \(table) WHERE owner = ?1 AND name = ?2")
            ScheduleColumns.bind(key, to: delete)
            try delete.run()
        }
    }

    func dueSchedules(at time: Timestamp, limit: Int) throws(StoreError) -> [ScheduleRow] {
        try check()
        let select = try statement(
            "\(ScheduleColumns.select) WHERE next IS NOT NULL AND next <= ?1 ORDER BY next, owner, name")
        select.bind(time, at: 1)
        return try schedules(select, atMost: limit)
    }

    func schedules(after key: ScheduleKey?, limit: Int) throws(StoreError) -> [ScheduleRow] {
        try check()
        let select = try statement(
            "\(ScheduleColumns.select) WHERE (owner, name) > (?1, ?2) ORDER BY owner, name")
        ScheduleColumns.bind(key ?? ScheduleKey(owner: 0, name: ""), to: select)
        return try schedules(select, atMost: limit)
    }

    func schedule(ofLastJob job: JobID) throws(StoreError) -> ScheduleRow? {
        try check()
        let select = try statement("\(ScheduleColumns.select) WHERE last_job = ?1 ORDER BY owner, name")
        select.bind(job, at: 1)
        return try schedules(select, atMost: 1).first
    }

    func scheduleCounts() throws(StoreError) -> [UInt32: CountValue] {
        try check()
        let select = try statement("SELECT owner, count(*), sum(size) FROM schedules GROUP BY owner")
        let counts = try select.rows { row throws(StoreError) in
            UInt32(exactly: row.integer(0)).map {
                ($0, CountValue(jobs: Int(row.integer(1)), bytes: row.integer(2)))
            }
        }
        return Dictionary(counts) { $1 }
    }

    /// The schedules that a statement selects, without damaged ones.
    private func schedules(_ select: PreparedStatement, atMost limit: Int) throws(StoreError) -> [ScheduleRow] {
        try select.rows(atMost: limit) { row throws(StoreError) in
            if let found = ScheduleColumns.row(row) { return found }
            damage.tell(of: "The schedule \"\((row.text(1) ?? "").echoed)\" of user \(row.integer(0))")
            return nil
        }
    }
}
