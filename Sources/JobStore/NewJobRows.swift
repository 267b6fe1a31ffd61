import GRDB
import JobModel

/// Inserts jobs as they are when they begin, many with one statement: most of what a row costs is what a statement does
/// before and after it.
struct NewJobRows {
    /// The rows that one statement inserts, largest first; the last is 1.
    private static let sizes = [32, 8, 1]
    private static let columns: Int32 = 17

    private let statements: [PreparedStatement]
    private let texts = BoundTexts()

    init(_ connection: Database) throws {
        statements = try Self.sizes.map { PreparedStatement(try connection.makeStatement(sql: Self.insert(rows: $0))) }
    }

    private static func insert(rows: Int) -> String {
        let row = "(" + String(repeating: "?,", count: Int(columns)) + "0,0,0)"
        return """
            INSERT INTO jobs (id, state, created_at, not_before, deadline_at, host, owner, queue, is_child, source, \
            priority, key, parent, parent_link, parent_index, parent_depth, spec, link, attempt, children) VALUES \(
                Array(repeating: row, count: rows).joined(separator: ","))
            """
    }

    /// Whether a job is as it begins, so that its new row holds all of it.
    static func isWhole(_ job: Job) -> Bool {
        job.startedAt == nil && job.finishedAt == nil && job.link == 0 && job.attempt == 0 && job.linkStartedAt == nil
            && job.carried == nil && job.outcomes.isEmpty && job.checkpoint == nil && job.lastFailure == nil
            && job.stop == nil && job.children == 0
    }

    /// Inserts `jobs` under the numbers from `first` on; `specs` are their texts, nil where they stand in a table of
    /// their own.
    func insert(_ jobs: ArraySlice<Job>, specs: ArraySlice<[UInt8]?>, from first: JobID) throws {
        var (jobs, specs, id) = (jobs, specs, first)
        for (size, statement) in zip(Self.sizes, statements) {
            while jobs.count >= size {
                defer { texts.removeAll() }
                for (row, (job, spec)) in zip(jobs.prefix(size), specs).enumerated() {
                    bind(job, id + JobID(row), spec, to: statement, from: Int32(row) * Self.columns)
                }
                try statement.run()
                jobs = jobs.dropFirst(size)
                specs = specs.dropFirst(size)
                id += JobID(size)
            }
        }
    }

    private func bind(
        _ job: Job, _ id: JobID, _ spec: [UInt8]?, to statement: PreparedStatement, from start: Int32
    ) {
        statement.bind(id, at: start + 1)
        statement.bind(job.state.code, at: start + 2)
        statement.bind(job.createdAt, at: start + 3)
        statement.bind(job.notBefore, at: start + 4)
        statement.bind(job.deadlineAt, at: start + 5)
        statement.bind(job.host, at: start + 6, keptIn: texts)
        statement.bind(Int64(job.owner), at: start + 7)
        statement.bind(job.spec.queue, at: start + 8, keptIn: texts)
        statement.bind(job.parent == nil ? 0 : 1, at: start + 9)
        statement.bind(job.spec.source.type?.rawValue ?? "", at: start + 10, keptIn: texts)
        statement.bind(job.spec.priority, at: start + 11)
        if let parent = job.parent {
            statement.bind(parent.job, at: start + 13)
            statement.bind(parent.link, at: start + 14)
            statement.bind(parent.index, at: start + 15)
            statement.bind(parent.depth, at: start + 16)
        } else {
            // Keys are for what clients submit.
            statement.bind(job.spec.key, at: start + 12, keptIn: texts)
        }
        statement.bind(utf8: spec, at: start + 17, keptIn: texts)
    }
}
