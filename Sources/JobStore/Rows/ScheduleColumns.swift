import JobModel

/// Writes schedules into rows of the table `schedules`, and reads them.
enum ScheduleColumns {
    private static let columns = """
        owner, name, groups, calendar, zone, every, catch_up, overlap, is_suspended, set_at, done_until, last_time, \
        last_job, submitted, skipped, waiting, spec_size, next, version
        """

    /// The number of columns that ``row(_:)`` reads.
    static let count: Int32 = 19
    static let select = "SELECT \(columns) FROM schedules"
    /// With the spec and the state of the last job behind the other columns.
    static let selectWhole = """
        SELECT \(columns), spec, (SELECT state FROM jobs WHERE id = last_job AND removing = 0) FROM schedules
        """
    /// Keeps the stored spec if it is given none.
    static let insert = """
        INSERT INTO schedules AS old (\(columns), size, spec) VALUES (\((1...21).map { "?\($0)" }.joined(separator: ", "))) \
        ON CONFLICT (owner, name) DO UPDATE SET spec = coalesce(excluded.spec, old.spec), \
        \("\(columns), size".split(separator: ", ").dropFirst(2).map { "\($0) = excluded.\($0)" }.joined(separator: ", "))
        """

    static func values(_ schedule: Schedule, name: any Bindable, spec: [UInt8]?) -> [(any Bindable)?] {
        var timing: [(any Bindable)?]
        switch schedule.timing {
        case .calendar(let text, _, let zone): timing = [text, zone, nil]
        case .every(let period): timing = [nil, nil, period]
        }
        let waiting = ByteCoder.bytes { coder throws(DamagedRow) in
            for time in schedule.waiting { _ = try coder.time(time) }
        }
        return [schedule.key.owner, name, schedule.groups?.text] + timing + [
            schedule.catchUp.rawValue, schedule.overlap.rawValue, schedule.isSuspended, schedule.setAt,
            schedule.doneUntil, schedule.lastTime, schedule.lastJob, schedule.submitted, schedule.skipped,
            waiting, schedule.specSize, schedule.next, schedule.version, schedule.storedSize, spec,
        ]
    }

    /// The subject of a sentence about the schedule in the present row.
    static func name(_ row: some StoredColumns) -> String {
        "The schedule \"\((row.text(1) ?? "").echoed)\" of user \(row.integer(0))"
    }

    /// The schedule in the present row of a statement that begins with ``select``.
    static func row(_ row: some StoredColumns) throws(DamagedRow) -> Schedule {
        guard let name = row.text(1), ScheduleKey.flaw(in: name) == nil,
            let catchUp = row.text(6).flatMap(ScheduleCatchUp.init(rawValue:)),
            let overlap = row.text(7).flatMap(ScheduleOverlap.init(rawValue:)), let timing = timing(row),
            let size = Int(exactly: row.integer(16)), size >= 0
        else { throw DamagedRow() }
        var schedule = Schedule(
            key: ScheduleKey(owner: try row.owner(0), name: name), timing: timing, catchUp: catchUp, overlap: overlap,
            isSuspended: row.integer(8) != 0, setAt: Timestamp(milliseconds: row.integer(9)), specSize: size)
        schedule.groups = row.text(2).map(CallerGroups.init(stored:))
        schedule.doneUntil = Timestamp(milliseconds: row.integer(10))
        schedule.lastTime = row.time(11)
        schedule.lastJob = row.optionalInteger(12)
        // Counters need room to grow.
        schedule.submitted = Int(max(0, min(row.integer(13), 1 << 53)))
        schedule.skipped = Int(max(0, min(row.integer(14), 1 << 53)))
        schedule.waiting = row.withBytes(15) { bytes in
            var coder = ByteCoder(reading: bytes)
            var times: [Timestamp] = []
            while !coder.isAtEnd, let time = try? coder.time(nil) { times.append(time) }
            return times
        }
        (schedule.next, schedule.version) = (row.time(17), row.integer(18))
        return schedule
    }

    private static func timing(_ row: some StoredColumns) -> ScheduleTiming? {
        if let every = row.optionalInteger(5) {
            return (1...ScheduleTiming.longest).contains(every) ? .every(every) : nil
        }
        guard let text = row.text(3), let zone = row.text(4), let expression = try? CalendarExpression(text) else {
            return nil
        }
        return .calendar(text, expression, zone: zone)
    }
}
