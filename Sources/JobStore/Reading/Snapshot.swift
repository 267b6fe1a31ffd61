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
            let job = Self.job(row)
            if job == nil { damage.tell(of: id) }
            return job
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

    /// The job in the present row; nil if it is damaged.
    static func job(_ statement: PreparedStatement) -> StoredJob? {
        guard let row = JobColumns.row(statement),
            let document = NewJobRow.Document(statement, from: JobColumns.selectedCount)
        else { return nil }
        var template: StoredValue?
        if !statement.isNull(JobColumns.selectedCount + 2) {
            guard let value = statement.withBytes(JobColumns.selectedCount + 2, StoredValue.init(encoded:)) else {
                return nil
            }
            template = value
        }
        return StoredJob(row: row, document: document, template: template)
    }

    mutating func standing(of id: JobID) throws(StoreError) -> JobStanding? {
        let select = try connection.statement(
            "SELECT owner, state, version, parent FROM jobs WHERE id = ?1 AND removing = 0", id)
        let found = try select.row { row throws(StoreError) -> (standing: JobStanding, parent: JobID?)? in
            guard let owner = UInt32(exactly: row.integer(0)), let state = JobState(code: row.integer(1)) else {
                damage.tell(of: id)
                return nil
            }
            return (JobStanding(owner: owner, state: state, version: row.integer(2)), row.optionalInteger(3))
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
            let carried = row.withBytes(3) { bytes in
                var reader = ByteReader(bytes)
                return reader.carried()
            }
            guard let state = JobState(code: row.integer(2)), carried != nil || row.isNull(3) else {
                damage.tell(of: row.integer(0))
                return nil
            }
            return ChildOutcome(job: row.integer(0), index: Int(row.integer(1)), state: state, carried: carried)
        }
    }

    // MARK: Schedules and transfers

    /// The schedules that a statement selects except damaged ones, without specs longer than `longestSpec`.
    func schedules(
        _ select: PreparedStatement, atMost limit: Int, longestSpec: Int
    ) throws(StoreError) -> [StoredScheduleRow] {
        try select.rows(atMost: limit) { row throws(StoreError) in
            guard let schedule = ScheduleColumns.row(row, damage) else { return nil }
            let isShown = schedule.schedule.specSize <= longestSpec
            return StoredScheduleRow(
                row: schedule, spec: isShown ? row.bytes(ScheduleColumns.count) : nil,
                lastState: row.optionalInteger(ScheduleColumns.count + 1).flatMap { JobState(code: $0) })
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
            let checkpoint = select.withBytes(3) { try? JSONParser.parse($0) }
            guard let owner = UInt32(exactly: select.integer(1)), let checkpoint else { continue }
            found.append(
                UnfinishedTransfer(
                    job: select.integer(0), owner: owner, link: Int(select.integer(2)), checkpoint: checkpoint))
        }
        return found
    }
}
