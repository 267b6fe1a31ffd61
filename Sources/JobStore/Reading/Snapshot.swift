import JobModel

/// Answers questions about jobs inside one snapshot of a connection.
struct Snapshot {
    let connection: SQLiteConnection
    private let damage: DamageReport
    /// Known answers of ``isHidden(_:)``.
    private var hidden: [JobID: Bool] = [:]

    init(_ connection: SQLiteConnection, _ damage: DamageReport) {
        self.connection = connection
        self.damage = damage
    }

    /// Selects the columns of the row, the document, and the template of an item.
    static let select = """
        SELECT \(JobColumns.selected), \(JobColumns.document), iif(is_item, \
        (SELECT template FROM templates WHERE templates.job = parent AND templates.list = jobs.list), NULL) \
        FROM jobs
        """

    mutating func job(_ id: JobID) throws(StoreError) -> (job: StoredJob, size: Int)? {
        let found = try connection.statement("\(Self.select) WHERE id = ?1 AND removing = 0", id).row {
            row throws(StoreError) in
            damage.legible("Job \(id)", (job: try StoredJob(row), size: StoredJob.size(row)))
        }
        guard let found else { return nil }
        if let parent = found.job.row.parent, try isHidden(parent.job) { return nil }
        return found
    }

    /// Adds the existing jobs while the page may grow.
    mutating func add(_ ids: [JobID], to page: inout SnapshotPage) throws(StoreError) {
        for id in ids where page.mayGrow {
            if let found = try job(id) { page.append(found.job, size: found.size) }
        }
    }

    mutating func standing(of id: JobID) throws(StoreError) -> JobStanding? {
        let select = try connection.statement(
            "SELECT owner, state, version, parent FROM jobs WHERE id = ?1 AND removing = 0", id)
        let found = try select.row { row throws(StoreError) in
            damage.legible("Job \(id)", (standing: try JobStanding(row), parent: row.optionalInteger(3)))
        }
        guard let found else { return nil }
        if let parent = found.parent, try isHidden(parent) { return nil }
        return found.standing
    }

    /// Whether the children of a job are hidden, as it or a job above it is being removed or gone.
    mutating func isHidden(_ job: JobID) throws(StoreError) -> Bool {
        if let known = hidden[job] { return known }
        let select = try connection.statement(
            """
            WITH RECURSIVE above (job) AS (
                VALUES (?1) UNION SELECT parent FROM above CROSS JOIN jobs ON id = job WHERE parent IS NOT NULL
            )
            SELECT 1 FROM above LEFT JOIN jobs ON id = job WHERE removing IS NOT 0 LIMIT 1
            """, job)
        let isHidden = try select.number() != nil
        hidden[job] = isHidden
        return isHidden
    }
}
