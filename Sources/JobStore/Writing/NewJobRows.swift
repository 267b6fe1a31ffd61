import GRDB
import JobModel

/// A row of a job that begins.
struct NewRow {
    let start: JobStart
    /// Nil where it stands in a table of its own, or the job is made of an item.
    let spec: [UInt8]?
    /// What a child is made of beside the template; empty where it stands in a table of its own.
    let item: [UInt8]?
    let queue: String
    let priority: Int
    let source: String
    let key: String?
    let tags: [String]
    let size: Int64
    /// The text that stands in a table of its own.
    let large: [UInt8]?

    /// A job with all that belongs to it.
    init(_ job: Job) {
        let text = job.spec.text ?? job.spec.json.utf8
        let isLarge = text.count > JobRow.largestInlineSpec
        start = JobStart(job)
        (spec, large) = isLarge ? (nil, text) : (text, nil)
        item = nil
        (queue, priority, tags) = (job.spec.queue, job.spec.priority, job.spec.tags)
        source = job.spec.source.type?.rawValue ?? ""
        // Keys are for what clients submit.
        key = job.parent == nil ? job.spec.key : nil
        size = job.storedSize
    }

    /// A child that a link makes, which is `job`, its spec aside.
    init(_ child: NewChild, _ job: Job) {
        start = JobStart(job)
        let text: [UInt8]
        if case .item(let json) = child.body { text = json.utf8 } else { text = child.ownSpec?.utf8 ?? [] }
        let isItem = if case .item = child.body { true } else { false }
        let isLarge = text.count > JobRow.largestInlineSpec
        spec = isItem || isLarge ? nil : text
        item = isItem ? isLarge ? [] : text : nil
        large = isLarge ? text : nil
        (queue, priority, source, tags) = (child.queue, child.priority, child.storedSource, child.tags)
        key = nil
        size = child.size
    }

    var bytes: Int { (spec?.count ?? 0) + (item?.count ?? 0) + (large?.count ?? 0) }
}

/// What the row of a job that begins says beside its texts. A copy of the whole job for each row would cost more than most of
/// what is done with it.
struct JobStart {
    let owner: UInt32
    let parent: Job.Parent?
    let state: JobState
    let createdAt: Timestamp
    let notBefore: Timestamp?
    let deadlineAt: Timestamp?
    let host: String?
    let isGated: Bool
    let groups: CallerGroups?

    init(_ job: Job) {
        owner = job.owner
        parent = job.parent
        state = job.state
        createdAt = job.createdAt
        notBefore = job.notBefore
        deadlineAt = job.deadlineAt
        host = job.host
        isGated = job.isGated
        groups = job.groups
    }
}

/// Inserts jobs as they are when they begin, many with one statement: most of what a row costs is what a statement does
/// before and after it.
struct NewJobRows {
    /// The rows that one statement inserts, largest first; the last is 1.
    private static let sizes = [32, 8, 1]
    private static let columns: Int32 = 21

    private let statements: [PreparedStatement]
    private let texts = BoundTexts()

    init(_ connection: Database) throws {
        statements = try Self.sizes.map { PreparedStatement(try connection.makeStatement(sql: Self.insert(rows: $0))) }
    }

    private static func insert(rows: Int) -> String {
        let row = "(" + String(repeating: "?,", count: Int(columns)) + "0,0,0)"
        return """
            INSERT INTO jobs (id, state, created_at, not_before, deadline_at, host, owner, queue, is_child, source, \
            priority, key, parent, parent_link, parent_index, parent_depth, spec, gated, size, item, caller_groups, link, attempt, \
            children) VALUES \(Array(repeating: row, count: rows).joined(separator: ","))
            """
    }

    /// Whether a job is as it begins, so that its new row holds all of it.
    static func isWhole(_ job: Job) -> Bool {
        job.startedAt == nil && job.finishedAt == nil && job.link == 0 && job.attempt == 0 && job.linkStartedAt == nil
            && job.carried == nil && job.outcomes.isEmpty && job.failedLink == nil && job.lastFailure == nil
            && job.stop == nil && job.children == 0 && job.crashes == 0 && job.bodies.isEmpty
    }

    /// Inserts rows under the ids from `first` on.
    func insert(_ rows: [NewRow], from first: JobID) throws {
        var start = 0
        for (size, statement) in zip(Self.sizes, statements) {
            while rows.count - start >= size {
                defer { texts.removeAll() }
                // By index, as a copy of a row is counted in all of its parts.
                for offset in 0..<size {
                    bind(
                        rows[start + offset], first + JobID(start + offset), to: statement,
                        from: Int32(offset) * Self.columns)
                }
                try statement.run()
                start += size
            }
        }
    }

    private func bind(_ row: NewRow, _ id: JobID, to statement: PreparedStatement, from start: Int32) {
        statement.bind(id, at: start + 1)
        statement.bind(row.start.state.code, at: start + 2)
        statement.bind(row.start.createdAt, at: start + 3)
        statement.bind(row.start.notBefore, at: start + 4)
        statement.bind(row.start.deadlineAt, at: start + 5)
        statement.bind(row.start.host, at: start + 6, keptIn: texts)
        statement.bind(Int64(row.start.owner), at: start + 7)
        statement.bind(row.queue, at: start + 8, keptIn: texts)
        statement.bind(row.start.parent == nil ? 0 : 1, at: start + 9)
        statement.bind(row.source, at: start + 10, keptIn: texts)
        statement.bind(row.priority, at: start + 11)
        statement.bind(row.key, at: start + 12, keptIn: texts)
        if let parent = row.start.parent {
            statement.bind(parent.job, at: start + 13)
            statement.bind(parent.link, at: start + 14)
            statement.bind(parent.index, at: start + 15)
            statement.bind(parent.depth, at: start + 16)
        }
        statement.bind(utf8: row.spec, at: start + 17, keptIn: texts)
        statement.bind(row.start.isGated ? 1 : 0, at: start + 18)
        statement.bind(row.size, at: start + 19)
        statement.bind(utf8: row.item, at: start + 20, keptIn: texts)
        statement.bind(row.start.groups?.text, at: start + 21, keptIn: texts)
    }
}
