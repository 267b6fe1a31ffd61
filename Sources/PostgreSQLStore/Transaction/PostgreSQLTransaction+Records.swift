import JobModel
import JobStore

/// Lists, checkpoints of transfers, downloads, schedules, settings of queues, counts, and unfinished work.
extension PostgreSQLTransaction {
    // MARK: Lists

    static let selectLists = """
        SELECT \(ListRow.columns), (SELECT template FROM templates WHERE job = lists.job AND list = lists.id) FROM lists
        """

    func list(of job: JobID) throws(StoreError) -> ListRow? {
        try check()
        if let known = lists[job] { return known }
        let found = try rows("\(Self.selectLists) WHERE job = $1", job).first.flatMap(list)
        lists[job] = .some(found)
        return found
    }

    func list(in row: PostgreSQLRow) -> ListRow? {
        damage.legible(.other("The list of job \(row.integer(0))")) { () throws(DamagedRow) in try ListRow(row) }
    }

    func put(_ list: ListRow) throws(StoreError) {
        // A template is stored at once, as it outlives the list.
        if try self.list(of: list.job)?.id != list.id { try storeTemplate(of: list) }
        lists[list.job] = list
        changedLists.insert(list.job)
    }

    private func storeTemplate(of list: ListRow) throws(StoreError) {
        guard let template = list.template else { return }
        try write(
            """
            INSERT INTO templates (job, list, link, template) VALUES ($1, $2, $3, $4) ON CONFLICT (job, list) \
            DO UPDATE SET link = excluded.link, template = excluded.template
            """, list.job, list.id, list.link, template.encoded)
        if case .file(let blob) = template { try insert([(blob, list.job)], listLink: list.link) }
    }

    func closeList(of job: JobID) throws(StoreError) {
        try check()
        lists[job] = .some(nil)
        changedLists.insert(job)
    }

    func dropTemplates(of job: JobID, fromLink link: Int) throws(StoreError) {
        try write("DELETE FROM templates WHERE job = $1 AND link >= $2", job, link)
        try write("DELETE FROM blobs WHERE job = $1 AND list_link >= $2", job, link)
    }

    func flushLists() throws(StoreError) {
        guard !changedLists.isEmpty else { return }
        let changed = changedLists.sorted()
        try write("DELETE FROM lists WHERE job = ANY ($1)", [.array(changed)])
        var kinds: [PostgreSQLParameter.Kind] = Array(repeating: .integer, count: 13)
        kinds[4] = .text
        let open = PostgreSQLRowArrays(kinds, changed.compactMap { lists[$0]??.values })
        if open.count > 0 {
            try write("INSERT INTO lists (\(ListRow.columns)) SELECT * FROM \(open.table)", open.parameters)
        }
        changedLists.removeAll()
    }

    // MARK: Checkpoints

    func save(checkpoint: [UInt8]?, of job: JobID, link: Int) throws(StoreError) {
        guard let checkpoint else {
            return try write("DELETE FROM checkpoints WHERE job = $1 AND link = $2", job, link)
        }
        try write(
            """
            INSERT INTO checkpoints (job, link, text) VALUES ($1, $2, $3) \
            ON CONFLICT (job, link) DO UPDATE SET text = excluded.text
            """, job, link, checkpoint)
    }

    func checkpoints(of job: JobID, fromLink link: Int) throws(StoreError) -> [(link: Int, text: [UInt8])] {
        // A job that was deleted in this round has no checkpoints.
        try flushJobs()
        return try rows(
            "SELECT link, text FROM checkpoints WHERE job = $1 AND link >= $2 ORDER BY link", job, link
        ).map { row in (Int(row.integer(0)), row.bytes(1) ?? []) }
    }

    private static let mostDownloads = 100_000

    func save(download: [UInt8], to path: String) throws(StoreError) {
        // The new row gets the highest number.
        try write(
            """
            INSERT INTO downloads (path, number, record) \
            VALUES ($1, (SELECT coalesce(max(number), 0) + 1 FROM downloads), $2) \
            ON CONFLICT (path) DO UPDATE SET number = excluded.number, record = excluded.record
            """, Array(path.utf8), download)
        try write(
            "DELETE FROM downloads WHERE number <= (SELECT max(number) FROM downloads) - \(Self.mostDownloads)")
    }

    // MARK: Schedules

    func schedule(_ key: ScheduleKey) throws(StoreError) -> ScheduleRow? {
        try schedules("owner = $1 AND name = $2", key.owner, Array(key.name.utf8)).first
    }

    func put(_ schedule: ScheduleRow, spec: [UInt8]?) throws(StoreError) {
        flags |= Turn.Flags.schedules
        var values = ScheduleColumns.values(schedule, spec: spec)
        values[1] = Array(schedule.schedule.key.name.utf8)
        let columns = "\(ScheduleColumns.columns), size, spec"
        let names = columns.split(separator: ", ").dropFirst(2)
        let changes = names.map { $0 == "spec" ? "spec = coalesce(excluded.spec, old.spec)" : "\($0) = excluded.\($0)" }
        try write(
            """
            INSERT INTO schedules AS old (\(columns)) VALUES (\((1...values.count).map { "$\($0)" }.joined(separator: ", "))) \
            ON CONFLICT (owner, name) DO UPDATE SET \(changes.joined(separator: ", "))
            """, PostgreSQLParameters(values).values)
    }

    func removeSchedule(_ key: ScheduleKey) throws(StoreError) {
        flags |= Turn.Flags.schedules
        try write("DELETE FROM schedules WHERE owner = $1 AND name = $2", key.owner, Array(key.name.utf8))
    }

    func dueSchedules(at time: Timestamp, limit: Int) throws(StoreError) -> [ScheduleRow] {
        try schedules("next IS NOT NULL AND next <= $1 ORDER BY next, owner, name LIMIT $2", time, limit)
    }

    func schedules(after key: ScheduleKey?, limit: Int) throws(StoreError) -> [ScheduleRow] {
        try schedules(
            "(owner, name) > ($1, $2) ORDER BY owner, name LIMIT $3", key?.owner ?? 0, Array((key?.name ?? "").utf8),
            limit)
    }

    func schedule(ofLastJob job: JobID) throws(StoreError) -> ScheduleRow? {
        try schedules("last_job = $1 ORDER BY owner, name LIMIT 1", job).first
    }

    func scheduleCounts() throws(StoreError) -> [UInt32: CountValue] {
        let counts = try rows("SELECT owner, count(*), sum(size)::bigint FROM schedules GROUP BY owner").map { row in
            UInt32(exactly: row.integer(0)).map {
                ($0, CountValue(jobs: Int(row.integer(1)), bytes: row.integer(2)))
            }
        }
        return Dictionary(counts) { $1 }
    }

    private func schedules(_ condition: String, _ values: (any Bindable)?...) throws(StoreError) -> [ScheduleRow] {
        try query("\(ScheduleColumns.select) WHERE \(condition)", PostgreSQLParameters(values).values).map { row in
            damage.legible(.other(ScheduleColumns.name(row))) { () throws(DamagedRow) in try ScheduleColumns.row(row) }
        }
    }

    // MARK: Queues, counts and work

    func queues() throws(StoreError) -> [String: QueueOverrides] {
        let found = try rows("SELECT \(QueueOverrides.columns) FROM queues").map { row in
            (row.text(0) ?? "", QueueOverrides(row))
        }
        return Dictionary(found) { $1 }
    }

    func put(_ overrides: QueueOverrides?, ofQueue name: String) throws(StoreError) {
        flags |= Turn.Flags.queues
        try write("DELETE FROM queues WHERE name = $1", name)
        guard let overrides else { return }
        try write(
            "INSERT INTO queues (\(QueueOverrides.columns)) VALUES ($1, $2, $3, $4, $5, $6, $7)",
            PostgreSQLParameters([name] + overrides.values).values)
    }

    func counts() throws(StoreError) -> [CountKey: CountValue] {
        let counts = try rows(CountChanges.latest).map { row in
            damage.legible(.other("A count of jobs")) { () throws(DamagedRow) in try CountKey.count(row) }
        }
        return Dictionary(counts) { $1 }
    }

    func put(_ counts: [CountKey: CountValue]) throws(StoreError) {
        guard !counts.isEmpty else { return }
        let sorted = counts.sorted {
            ($0.key.owner, $0.key.queue, $0.key.state.code) < ($1.key.owner, $1.key.queue, $1.key.state.code)
        }
        let rows = PostgreSQLRowArrays(
            [.integer, .text, .integer, .integer, .integer, .integer],
            sorted.map {
                [$0.key.owner, $0.key.queue, $0.key.state.code, $0.value.jobs, $0.value.bytes, turn?.number ?? 0]
            })
        try write(
            """
            \(CountChanges.insert) \(rows.table) ON CONFLICT (number, owner, queue, state) \
            DO UPDATE SET jobs = excluded.jobs, bytes = excluded.bytes
            """, rows.parameters)
    }

    private static let selectWork = "SELECT \(WorkRow.columns) FROM work"

    func work(after: Int64, limit: Int) throws(StoreError) -> [WorkRow] {
        try work("WHERE id > $1 ORDER BY id LIMIT $2", after, limit)
    }

    func nextWork(ofOwnerAbove owner: UInt32?) throws(StoreError) -> WorkRow? {
        try work(
            "WHERE kind <> \(WorkRow.Kind.removeParts.rawValue) AND owner > $1 ORDER BY owner, id LIMIT 1",
            owner.map(Int64.init) ?? -1
        ).first
    }

    func hasWork(_ kind: WorkRow.Kind, of job: JobID) throws(StoreError) -> Bool {
        try rows("SELECT 1 FROM work WHERE job = $1 AND kind = $2 LIMIT 1", job, kind.rawValue).count > 0
    }

    func add(_ work: WorkRow) throws(StoreError) -> Int64 {
        let id = try nextNumber()
        try write(
            "INSERT INTO work (\(WorkRow.columns)) VALUES ($1, $2, $3, $4, $5, $6, $7)", id, work.kind.rawValue,
            work.job,
            work.owner, work.list, work.position, work.payload)
        return id
    }

    func update(_ work: WorkRow) throws(StoreError) {
        try write("UPDATE work SET position = $2 WHERE id = $1", work.id, work.position)
    }

    func endWork(_ id: Int64) throws(StoreError) {
        endedWork.append(id)
        try write("DELETE FROM work WHERE id = $1", id)
    }

    private func work(_ condition: String, _ values: (any Bindable)?...) throws(StoreError) -> [WorkRow] {
        try query("\(Self.selectWork) \(condition)", PostgreSQLParameters(values).values).map { row in
            damage.legible(.other("The piece of work \(row.integer(0))")) { () throws(DamagedRow) in try WorkRow(row) }
        }
    }
}
