import JobModel

/// Answers questions inside one snapshot of a connection.
struct Snapshot {
    let connection: SQLiteConnection
    let damage: DamageReport
    /// Whether parents are hidden, as they or one of their parents are being removed or gone.
    private var hidden: [JobID: Bool] = [:]
    /// More than the depth to which lists may be nested; a deeper row is damaged.
    private static let deepest = 64

    init(_ connection: SQLiteConnection, _ damage: DamageReport) {
        self.connection = connection
        self.damage = damage
    }

    // MARK: Jobs

    /// Selects the columns of the row, the document, and the template of an item.
    static let select = """
        SELECT \(JobColumns.selected), is_item, text, iif(is_item, \
        (SELECT template FROM templates WHERE templates.job = parent AND templates.list = jobs.list), NULL) \
        FROM jobs JOIN documents ON documents.job = id
        """

    mutating func job(_ id: JobID) throws(StoreError) -> StoredJob? {
        let found = try connection.statement("\(Self.select) WHERE id = ?1 AND removing = 0", id).row {
            row throws(StoreError) in
            damage.legible(id) { () throws(DamagedRow) in try Self.job(row) }
        }
        guard let found else { return nil }
        if let parent = found.row.parent, try isHidden(parent.job) { return nil }
        return found
    }

    /// Adds the existing jobs while the page may grow.
    mutating func add(_ ids: [JobID], to page: inout SnapshotPage) throws(StoreError) {
        for id in ids where page.mayGrow {
            if let job = try job(id) { page.append(job) }
        }
    }

    /// The job in the present row.
    static func job(_ row: PreparedStatement) throws(DamagedRow) -> StoredJob {
        StoredJob(
            row: try JobColumns.row(row), document: try NewJobRow.Document(row, from: JobColumns.selectedCount),
            template: try row.optionalValue(JobColumns.selectedCount + 2))
    }

    mutating func standing(of id: JobID) throws(StoreError) -> JobStanding? {
        let select = try connection.statement(
            "SELECT owner, state, version, parent FROM jobs WHERE id = ?1 AND removing = 0", id)
        let found = try select.row { row throws(StoreError) in
            damage.legible(id) { () throws(DamagedRow) -> (standing: JobStanding, parent: JobID?) in
                let standing = JobStanding(
                    owner: try row.owner(0), state: try row.state(1), version: row.integer(2))
                return (standing, row.optionalInteger(3))
            }
        }
        guard let found else { return nil }
        if let parent = found.parent, try isHidden(parent) { return nil }
        return found.standing
    }

    /// Whether the children of a job are hidden.
    mutating func isHidden(_ job: JobID) throws(StoreError) -> Bool {
        var path: [JobID] = []
        var next: JobID? = job
        var isHidden = false
        while let id = next, !isHidden {
            if let known = hidden[id] {
                isHidden = known
                break
            }
            path.append(id)
            let select = try connection.statement("SELECT parent, removing FROM jobs WHERE id = ?1", id)
            let found = try select.row { row throws(StoreError) in
                (parent: row.optionalInteger(0), isRemoving: row.integer(1) != 0)
            }
            isHidden = found?.isRemoving ?? true || path.count > Self.deepest
            next = found?.parent
        }
        for id in path { hidden[id] = isHidden }
        return isHidden
    }

    func outcomes(of job: JobID, list: Int64, from index: Int, limit: Int) throws(StoreError) -> [ChildOutcome] {
        let select = try connection.statement(
            """
            SELECT id, parent_index, state, carried FROM jobs INDEXED BY jobs_by_parent \
            WHERE parent = ?1 AND list = ?2 AND parent_index >= ?3 ORDER BY parent_index
            """, job, list, index)
        return try select.rows(atMost: limit) { row throws(StoreError) in
            damage.legible(row.integer(0)) { () throws(DamagedRow) in
                ChildOutcome(
                    job: row.integer(0), index: Int(row.integer(1)), state: try row.state(2),
                    carried: try row.optionalCarried(3))
            }
        }
    }

    // MARK: Schedules and transfers

    /// The schedules that a statement selects except damaged ones, without specs longer than `longestSpec`.
    func schedules(
        _ select: PreparedStatement, atMost limit: Int, longestSpec: Int
    ) throws(StoreError) -> [StoredScheduleRow] {
        try select.rows(atMost: limit) { row throws(StoreError) in
            damage.legible(ScheduleColumns.name(row)) { () throws(DamagedRow) in
                let schedule = try ScheduleColumns.row(row)
                let isShown = schedule.schedule.specSize <= longestSpec
                return StoredScheduleRow(
                    row: schedule, spec: isShown ? row.bytes(ScheduleColumns.count) : nil,
                    lastState: row.optionalInteger(ScheduleColumns.count + 1).flatMap { JobState(code: $0) })
            }
        }
    }

    /// Leaves out damaged checkpoints, with which no transfer can continue.
    mutating func unfinishedTransfers(of job: JobID?, limit: Int) throws(StoreError) -> [UnfinishedTransfer] {
        let select = try connection.statement(
            """
            SELECT checkpoints.job, jobs.owner, checkpoints.link, text, jobs.parent FROM checkpoints \
            CROSS JOIN jobs ON jobs.id = checkpoints.job WHERE \(job == nil ? "" : "checkpoints.job = ?1 AND ")\
            state < 3 AND removing = 0 AND jobs.link = checkpoints.link ORDER BY checkpoints.job
            """)
        if let job { select.bind(job, at: 1) }
        defer { select.reset() }
        var found: [UnfinishedTransfer] = []
        while found.count < limit, try select.step() {
            if let parent = select.optionalInteger(4), try isHidden(parent) { continue }
            let checkpoint = select.withBytes(3) { try? JSONParser.parse($0).value }
            guard let owner = UInt32(exactly: select.integer(1)), let checkpoint else { continue }
            found.append(
                UnfinishedTransfer(
                    job: select.integer(0), owner: owner, link: Int(select.integer(2)), checkpoint: checkpoint))
        }
        return found
    }
}
