import JobModel

/// What rounds and readers ask for.
extension SQLRows {
    /// The schedules after a key, of one owner or of all.
    func schedules(
        after key: ScheduleKey?, owner: UInt32? = nil, atMost limit: Int, longestSpec: Int
    ) throws(StoreError) -> [StoredSchedule] {
        let condition = "(owner, name) > (?1, ?2)\(owner == nil ? "" : " AND owner = ?3") ORDER BY owner, name"
        let start: [(any Bindable)?] = [key?.owner ?? owner ?? 0, key?.name ?? ""]
        return try schedules(
            condition, start + (owner.map { [$0] } ?? []), atMost: limit, longestSpec: longestSpec)
    }

    /// The schedules that fit a condition except damaged ones, without specs longer than `longestSpec`.
    func schedules(
        _ condition: String, _ values: [(any Bindable)?], atMost limit: Int = 1, longestSpec: Int = 0
    ) throws(StoreError) -> [StoredSchedule] {
        let select = "\(StoredSchedule.select(longestSpec: longestSpec)) WHERE \(condition)"
        return try rows(select, values, atMost: limit, named: { StoredSchedule.name($0) }) {
            row throws(DamagedRow) in try StoredSchedule(row)
        }
    }
}

extension StoredSchedule {
    /// Selects what ``init(_:)`` reads.
    static func select(longestSpec: Int) -> String {
        """
        SELECT owner, name, next, last_job, record, CASE WHEN length(spec) <= \(longestSpec) THEN spec END, \
        (SELECT state FROM jobs WHERE id = last_job AND removing = 0) FROM schedules
        """
    }

    /// The subject of a sentence about the schedule in the present row.
    static func name(_ row: some StoredColumns) -> String {
        "The schedule \"\((row.text(1) ?? "").echoed)\" of user \(row.integer(0))"
    }

    init(_ row: some StoredColumns) throws(DamagedRow) {
        let key = ScheduleKey(owner: try row.owner(0), name: row.text(1) ?? "")
        guard ScheduleKey.flaw(in: key.name) == nil else { throw DamagedRow() }
        var schedule = try row.decoded(4) { coder throws(DamagedRow) in try coder.schedule(nil, key) }
        (schedule.next, schedule.lastJob) = (row.time(2), row.optionalInteger(3))
        self.init(schedule, spec: row.bytes(5), lastState: row.optionalInteger(6).flatMap { JobState(code: $0) })
    }
}

extension ByteCoder {
    /// All of a schedule but its key, its spec, and what queries ask for.
    mutating func schedule(_ passed: Schedule?, _ key: ScheduleKey) throws(DamagedRow) -> Schedule {
        let timing = try timing(passed?.timing)
        guard let catchUp = ScheduleCatchUp(rawValue: try text(passed?.catchUp.rawValue)),
            let overlap = ScheduleOverlap(rawValue: try text(passed?.overlap.rawValue))
        else { throw DamagedRow() }
        var schedule = Schedule(
            key: key, timing: timing, catchUp: catchUp, overlap: overlap, isSuspended: try flag(passed?.isSuspended),
            setAt: try time(passed?.setAt), specSize: try count(passed?.specSize))
        schedule.groups = try has(passed?.groups) ? CallerGroups(stored: text(passed?.groups?.text)) : nil
        schedule.doneUntil = try time(passed?.doneUntil)
        schedule.lastTime = try has(passed?.lastTime) ? time(passed?.lastTime) : nil
        // Counters need room to grow.
        schedule.submitted = Int(max(0, min(try number(passed.map { Int64($0.submitted) }), 1 << 53)))
        schedule.skipped = Int(max(0, min(try number(passed.map { Int64($0.skipped) }), 1 << 53)))
        schedule.waiting = try list(passed?.waiting) { coder, time throws(DamagedRow) in try coder.time(time) }
        schedule.version = max(0, min(try number(passed?.version), 1 << 53))
        return schedule
    }

    private mutating func timing(_ timing: ScheduleTiming?) throws(DamagedRow) -> ScheduleTiming {
        var (passed, zone, period): (String?, String?, Int64?)
        switch timing {
        case nil: break
        case .calendar(let text, _, let name): (passed, zone) = (text, name)
        case .every(let every): period = every
        case .reboot(let boot): (passed, zone) = (ScheduleTiming.rebootName, boot)
        }
        if try has(period) {
            let every = try number(period)
            guard (1...ScheduleTiming.longest).contains(every) else { throw DamagedRow() }
            return .every(every)
        }
        let (text, name) = (try text(passed), try text(zone))
        if text == ScheduleTiming.rebootName { return .reboot(name) }
        guard let expression = try? CalendarExpression(text) else { throw DamagedRow() }
        return .calendar(text, expression, zone: name)
    }
}
