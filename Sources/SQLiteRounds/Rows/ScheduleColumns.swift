import JobModel

/// How a schedule is written into a row of the table `schedules`. Its spec stands in a table of its own, so that it is
/// not written again with every job.
enum ScheduleColumns {
    private static let columns = """
        owner, name, groups, calendar, zone, every, catch_up, overlap, is_suspended, set_at, done_until, last_time, \
        last_job, submitted, skipped, waiting, spec_size, next, version
        """

    /// How many ``row(_:)`` reads.
    static let count: Int32 = 19
    static let select = "SELECT \(columns) FROM schedules"
    /// With the state of its last job behind the other columns.
    static let selectWithState = """
        SELECT \(columns), (SELECT state FROM jobs WHERE id = last_job AND removing = 0) FROM schedules
        """
    static let insert = """
        INSERT OR REPLACE INTO schedules (\(columns), size) VALUES (\((1...20).map { "?\($0)" }.joined(separator: ", ")))
        """

    static func bind(_ row: ScheduleRow, to statement: PreparedStatement) {
        let schedule = row.schedule
        bind(schedule.key, to: statement)
        statement.bind(schedule.groups?.text, at: 3)
        switch schedule.timing {
        case .calendar(let text, _, let zone):
            statement.bind(text, at: 4)
            statement.bind(zone, at: 5)
        case .every(let period): statement.bind(period, at: 6)
        }
        statement.bind(schedule.catchUp.rawValue, at: 7)
        statement.bind(schedule.overlap.rawValue, at: 8)
        statement.bind(schedule.isSuspended ? 1 : 0, at: 9)
        statement.bind(schedule.setAt, at: 10)
        statement.bind(schedule.doneUntil, at: 11)
        statement.bind(schedule.lastTime, at: 12)
        statement.bind(schedule.lastJob, at: 13)
        statement.bind(schedule.submitted, at: 14)
        statement.bind(schedule.skipped, at: 15)
        var waiting = ByteWriter(reserving: 8 * schedule.waiting.count)
        for time in schedule.waiting { waiting.time(time) }
        statement.bind(bytes: waiting.bytes, at: 16)
        statement.bind(schedule.specSize, at: 17)
        statement.bind(row.next, at: 18)
        statement.bind(row.version, at: 19)
        statement.bind(schedule.storedSize, at: 20)
    }

    /// Binds the key, which is the first two columns.
    static func bind(_ key: ScheduleKey, to statement: PreparedStatement) {
        statement.bind(Int64(key.owner), at: 1)
        statement.bind(key.name, at: 2)
    }

    /// The schedule in the present row of a statement that begins with ``select``; nil where it is damaged.
    static func row(_ row: PreparedStatement) -> ScheduleRow? {
        guard let owner = UInt32(exactly: row.integer(0)), let name = row.text(1), ScheduleKey.flaw(in: name) == nil,
            let catchUp = row.text(6).flatMap(ScheduleCatchUp.init(rawValue:)),
            let overlap = row.text(7).flatMap(ScheduleOverlap.init(rawValue:)), let timing = timing(row),
            let size = Int(exactly: row.integer(16)), size >= 0
        else { return nil }
        var schedule = Schedule(
            key: ScheduleKey(owner: owner, name: name), timing: timing, catchUp: catchUp, overlap: overlap,
            isSuspended: row.integer(8) != 0, setAt: Timestamp(milliseconds: row.integer(9)), specSize: size)
        if let text = row.text(2) {
            // Without them more might be allowed than with them.
            guard let groups = CallerGroups(stored: text) else { return nil }
            schedule.groups = groups
        }
        schedule.doneUntil = Timestamp(milliseconds: row.integer(10))
        schedule.lastTime = row.time(11)
        schedule.lastJob = row.optionalInteger(12)
        // Counters must have room to be counted up.
        schedule.submitted = Int(max(0, min(row.integer(13), 1 << 53)))
        schedule.skipped = Int(max(0, min(row.integer(14), 1 << 53)))
        schedule.waiting = row.withBytes(15) { bytes in
            var reader = ByteReader(bytes)
            var times: [Timestamp] = []
            while !reader.isAtEnd, let time = reader.time() { times.append(time) }
            return times
        }
        var found = ScheduleRow(schedule, next: row.time(17))
        found.version = row.integer(18)
        return found
    }

    private static func timing(_ row: PreparedStatement) -> ScheduleTiming? {
        if let every = row.optionalInteger(5) {
            return (1...ScheduleTiming.longest).contains(every) ? .every(every) : nil
        }
        guard let text = row.text(3), let zone = row.text(4), let expression = try? CalendarExpression(text) else {
            return nil
        }
        return .calendar(text, expression, zone: zone)
    }
}
