package import JobModel

extension SQLTransaction {
    package func schedule(_ key: ScheduleKey) throws(StoreError) -> Schedule? {
        try schedules("owner = ?1 AND name = ?2", [key.owner, key.name]).first?.schedule
    }

    /// Keeps the stored spec if it is given none.
    package func put(_ schedule: Schedule, spec: [UInt8]?) throws(StoreError) {
        willChange(.schedules)
        let key = schedule.key
        let record = ByteCoder.bytes { coder throws(DamagedRow) in _ = try coder.schedule(schedule, key) }
        try write(
            """
            INSERT INTO schedules AS old (owner, name, next, last_job, size, record, spec) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (owner, name) \
            DO UPDATE SET next = excluded.next, last_job = excluded.last_job, size = excluded.size, \
            record = excluded.record, spec = coalesce(excluded.spec, old.spec)
            """,
            [key.owner, key.name, schedule.next, schedule.lastJob, schedule.storedSize, record, spec])
    }

    package func removeSchedule(_ key: ScheduleKey) throws(StoreError) {
        willChange(.schedules)
        try write("DELETE FROM schedules WHERE owner = ?1 AND name = ?2", [key.owner, key.name])
    }

    package func dueSchedules(at time: Timestamp, limit: Int) throws(StoreError) -> [Schedule] {
        try schedules("next IS NOT NULL AND next <= ?1 ORDER BY next, owner, name", [time], atMost: limit)
            .map(\.schedule)
    }

    package func schedules(after key: ScheduleKey?, limit: Int) throws(StoreError) -> [Schedule] {
        try schedules(after: key, atMost: limit, longestSpec: 0).map(\.schedule)
    }

    package func schedule(ofLastJob job: JobID) throws(StoreError) -> Schedule? {
        try schedules("last_job = ?1 ORDER BY owner, name", [job]).first?.schedule
    }

    package func scheduleCounts() throws(StoreError) -> [UInt32: CountValue] {
        let select = "SELECT owner, count(*), CAST(sum(size) AS bigint) FROM schedules GROUP BY owner"
        let counts = try rows(select, [], atMost: .max) { row in
            UInt32(exactly: row.integer(0)).map { ($0, CountValue(jobs: Int(row.integer(1)), bytes: row.integer(2))) }
        }
        return Dictionary(counts) { $1 }
    }
}
