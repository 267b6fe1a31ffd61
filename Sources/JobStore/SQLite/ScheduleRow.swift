import GRDB
import JobModel

/// How a schedule is written into a row of the table `schedules`. Its spec stands in a table of its own, so that it is
/// not written again with every job.
enum ScheduleRow {
    private static let columns = """
        owner, name, calendar, zone, every, catch_up, overlap, is_suspended, set_at, done_until, last_time, last_job, \
        submitted, skipped, waiting, spec_size, caller_groups
        """

    /// As ``schedule(_:)`` reads it, with the state of its last job behind that.
    static let select = """
        SELECT \(columns), (SELECT state FROM jobs WHERE id = last_job) FROM schedules
        """

    static let insert = """
        INSERT OR REPLACE INTO schedules (\(columns)) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, \
        ?14, ?15, ?16, ?17)
        """

    static func bind(_ schedule: Schedule, to statement: PreparedStatement) {
        bind(schedule.key, to: statement)
        switch schedule.timing {
        case .calendar(let text, _, let zone):
            statement.bind(text, at: 3)
            statement.bind(zone, at: 4)
        case .every(let period): statement.bind(period, at: 5)
        }
        statement.bind(schedule.catchUp.rawValue, at: 6)
        statement.bind(schedule.overlap.rawValue, at: 7)
        statement.bind(schedule.isSuspended ? 1 : 0, at: 8)
        statement.bind(schedule.setAt, at: 9)
        statement.bind(schedule.doneUntil, at: 10)
        statement.bind(schedule.lastTime, at: 11)
        if let job = schedule.lastJob { statement.bind(job, at: 12) }
        statement.bind(schedule.submitted, at: 13)
        statement.bind(schedule.skipped, at: 14)
        if !schedule.waiting.isEmpty {
            let times = JSON.array(schedule.waiting.map { JSON(Int($0.milliseconds)) })
            statement.bind(utf8: times.utf8, at: 15)
        }
        statement.bind(schedule.specSize, at: 16)
        statement.bind(schedule.groups?.text, at: 17)
    }

    /// Binds the key, which is the first two columns.
    static func bind(_ key: ScheduleKey, to statement: PreparedStatement) {
        statement.bind(Int64(key.owner), at: 1)
        statement.bind(key.name, at: 2)
    }

    /// The schedule in the present row of a statement that begins with ``select``; nil where it makes no sense.
    static func schedule(_ row: PreparedStatement) -> StoredSchedule? {
        guard let owner = UInt32(exactly: row.integer(0)), let name = row.text(1), ScheduleKey.flaw(in: name) == nil,
            let catchUp = row.text(5).flatMap(ScheduleCatchUp.init(rawValue:)),
            let overlap = row.text(6).flatMap(ScheduleOverlap.init(rawValue:)), let timing = timing(row),
            let size = Int(exactly: row.integer(15)), size >= 0
        else { return nil }
        var schedule = Schedule(
            key: ScheduleKey(owner: owner, name: name), timing: timing, catchUp: catchUp, overlap: overlap,
            isSuspended: row.integer(7) != 0, setAt: Timestamp(milliseconds: row.integer(8)), specSize: size)
        schedule.doneUntil = Timestamp(milliseconds: row.integer(9))
        schedule.lastTime = row.time(10)
        schedule.lastJob = row.optionalInteger(11)
        // Counters must have room to be counted up.
        schedule.submitted = Int(max(0, min(row.integer(12), 1 << 53)))
        schedule.skipped = Int(max(0, min(row.integer(13), 1 << 53)))
        let waiting = row.utf8(14) { text in (try? JSONParser.parse(text))?.array ?? [] } ?? []
        schedule.waiting = waiting.compactMap(\.int).map { Timestamp(milliseconds: Int64($0)) }.sorted()
        if let text = row.text(16) {
            // Without them more might be allowed than with them.
            guard let groups = CallerGroups(stored: text) else { return nil }
            schedule.groups = groups
        }
        return StoredSchedule(
            schedule, lastState: JobState(code: row.integer(17)).flatMap { row.isNull(17) ? nil : $0 })
    }

    private static func timing(_ row: PreparedStatement) -> ScheduleTiming? {
        if let every = row.optionalInteger(4) {
            return (1...ScheduleTiming.longest).contains(every) ? .every(every) : nil
        }
        guard let text = row.text(2), let zone = row.text(3), let expression = try? CalendarExpression(text) else {
            return nil
        }
        return .calendar(text, expression, zone: zone)
    }
}

extension Writer {
    func set(_ schedule: Schedule, spec: JSON) throws {
        let text = spec.utf8
        try save(schedule, bytes: text.count)
        let statement = try statement("INSERT OR REPLACE INTO schedule_specs (owner, name, spec) VALUES (?1, ?2, ?3)")
        ScheduleRow.bind(schedule.key, to: statement)
        statement.bind(utf8: text, at: 3)
        try statement.run()
    }

    /// Stores what has become of a schedule with the job that it submits, both or none of them.
    func advance(_ schedule: Schedule, _ job: Job?) throws -> [Submission] {
        let find = try statement("SELECT 1 FROM schedules WHERE owner = ?1 AND name = ?2")
        ScheduleRow.bind(schedule.key, to: find)
        guard try find.row({ $0.integer(0) }) != nil else { return [] }
        guard let job else {
            try save(schedule)
            return []
        }
        let submissions = try submit([job])
        var schedule = schedule
        switch submissions.first {
        case .created(let id), .joined(let id, _): schedule.lastJob = id
        case .conflict, nil: return submissions
        }
        try save(schedule)
        return submissions
    }

    private func save(_ schedule: Schedule, bytes: Int = 0) throws {
        let statement = try statement(ScheduleRow.insert)
        ScheduleRow.bind(schedule, to: statement)
        try statement.run()
        count(bytes: bytes)
    }

    func remove(_ schedule: ScheduleKey) throws {
        for table in ["schedules", "schedule_specs"] {
            let statement = try statement("DELETE FROM \(table) WHERE owner = ?1 AND name = ?2")
            ScheduleRow.bind(schedule, to: statement)
            try statement.run()
        }
        mayHaveFreePages = true
        count()
    }
}

extension Reader {
    /// A schedule with its spec.
    func schedule(_ key: ScheduleKey) throws -> [StoredSchedule] {
        let statement = try statement("\(ScheduleRow.select) WHERE owner = ?1 AND name = ?2")
        ScheduleRow.bind(key, to: statement)
        guard var stored = try statement.row({ ScheduleRow.schedule($0) }) else { return [] }
        stored.spec = try spec(of: key)
        return [stored]
    }

    /// All schedules without their specs. Those that make no sense are reported and left out.
    func schedules() throws -> [StoredSchedule] {
        try statement("\(ScheduleRow.select) ORDER BY owner, name").rows { row in
            if let stored = ScheduleRow.schedule(row) { return stored }
            let name = row.text(1) ?? ""
            unreadable.tell(
                ofSchedule: StoreError(
                    .read,
                    "The schedule \"\(name.echoed)\" of user \(row.integer(0)) makes no sense in the database; set it anew."
                ))
            return nil
        }
    }

    func schedules(after key: ScheduleKey?, owner: UInt32?, limit: Int) throws -> [StoredSchedule] {
        let range = owner == nil ? "" : "AND owner = ?3"
        let statement = try statement(
            "\(ScheduleRow.select) WHERE (owner, name) > (?1, ?2) \(range) ORDER BY owner, name")
        ScheduleRow.bind(key ?? ScheduleKey(owner: owner ?? 0, name: ""), to: statement)
        if let owner { statement.bind(Int64(owner), at: 3) }
        defer { statement.reset() }
        var page: [StoredSchedule] = []
        while page.count < limit, !StoredSchedule.isFull(page), try statement.step() {
            guard var stored = ScheduleRow.schedule(statement) else { continue }
            if stored.schedule.specSize <= StoredSchedule.longestShownSpec {
                stored.spec = try spec(of: stored.schedule.key)
            }
            page.append(stored)
        }
        return page
    }

    func spec(of key: ScheduleKey) throws -> JSON? {
        let statement = try statement("SELECT spec FROM schedule_specs WHERE owner = ?1 AND name = ?2")
        ScheduleRow.bind(key, to: statement)
        return try statement.row { row in
            row.utf8(0) { text in JobRow.value(text)?.value } ?? nil
        }
    }
}
