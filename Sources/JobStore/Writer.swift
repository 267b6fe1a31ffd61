import GRDB
import GRDBSQLite
import JobModel

/// Carries out changes inside a transaction of the one connection that writes.
final class Writer {
    private let connection: Database
    private let insertJob: PreparedStatement
    private let updateJob: PreparedStatement
    private let selectKey: PreparedStatement
    private let dropNotes: PreparedStatement
    /// The highest number that a job ever had, as the last commit left it and as this transaction does.
    private(set) var lastJob: (committed: JobID, present: JobID)
    var downloadCount: (committed: Int?, present: Int?) = (nil, nil)
    /// Where SQLite leaves the length of the log after each commit, in pages.
    private let logLength: UnsafeMutablePointer<Int32>
    /// Rows changed and bytes of text written since the transaction began.
    private(set) var load = (changes: 0, bytes: 0)

    init(_ connection: Database) throws {
        self.connection = connection
        logLength = .allocate(capacity: 1)
        logLength.initialize(to: 0)
        func prepare(_ sql: String) throws -> PreparedStatement {
            PreparedStatement(try connection.makeStatement(sql: sql))
        }
        insertJob = try prepare(JobRow.insert)
        updateJob = try prepare(JobRow.update)
        selectKey = try prepare(
            """
            SELECT id, state, coalesce(spec, (SELECT spec FROM large_specs WHERE job = jobs.id)) FROM jobs \
            WHERE owner = ?1 AND key = ?2
            """)
        dropNotes = try prepare("DELETE FROM notes WHERE job = ?1")
        let last = try Int64.fetchOne(
            connection,
            sql: "SELECT max(value, coalesce((SELECT max(id) FROM jobs), 0)) FROM state WHERE name = 'last_job'")
        lastJob = (last ?? 0, last ?? 0)
        // This takes the place of SQLite's own hook, which would write the log into the database before a commit returns.
        sqlite3_wal_hook(
            connection.sqliteConnection,
            { logLength, _, _, pages in
                logLength?.assumingMemoryBound(to: Int32.self).pointee = pages
                return SQLITE_OK
            }, logLength)
    }

    deinit {
        if let open = connection.sqliteConnection { sqlite3_wal_hook(open, nil, nil) }
        logLength.deallocate()
    }

    // MARK: Transactions

    /// Runs `body` in a transaction and commits it; undoes all of it where either fails.
    func commit(_ body: () throws -> Void) throws {
        load = (0, 0)
        do {
            try connection.inTransaction(.immediate) {
                try body()
                return .commit
            }
            lastJob.committed = lastJob.present
            downloadCount.committed = downloadCount.present
        } catch {
            lastJob.present = lastJob.committed
            downloadCount.present = downloadCount.committed
            throw error
        }
    }

    /// The pages in the log after the last commit.
    var pagesInLog: Int { Int(logLength.pointee) }

    /// Writes the log into the database, as far as no reader needs it.
    func checkpoint() throws {
        try connection.checkpoint(.passive)
    }

    func count(bytes: Int = 0) {
        load.changes += 1
        load.bytes += bytes
    }

    func statement(_ sql: String) throws -> PreparedStatement { try PreparedStatement(sql, on: connection) }

    // MARK: Jobs

    func submit(_ jobs: [Job]) throws -> [Submission] {
        var submissions: [Submission] = []
        submissions.reserveCapacity(jobs.count)
        for job in jobs { submissions.append(try earlier(job) ?? .created(insert(job))) }
        return submissions
    }

    /// What became of `job` where its key is taken.
    private func earlier(_ job: Job) throws -> Submission? {
        guard job.parent == nil, let key = job.spec.key else { return nil }
        selectKey.bind(Int64(job.owner), at: 1)
        selectKey.bind(key, at: 2)
        return try selectKey.row { row in
            let id = row.integer(0)
            let isSame = row.utf8(2) { stored in
                let spec = job.spec.json
                return spec.utf8.elementsEqual(stored)
                    || (try? JSONParser.parse(stored, maximumDepth: JobRow.maximumDepth)) == spec
            }
            guard isSame == true, let state = JobState(code: row.integer(1)) else { return .conflict(id) }
            return .joined(id, state)
        }
    }

    private func insert(_ job: Job) throws -> JobID {
        let id = lastJob.present + 1
        let spec = job.spec.json.utf8
        let isLarge = spec.count > JobRow.largestInlineSpec
        let size = JobRow.bindLife(of: job, numbered: id, to: insertJob)
        JobRow.bindOrigin(of: job, spec: isLarge ? nil : spec, to: insertJob)
        try insertJob.run()
        lastJob.present = id
        if isLarge {
            let statement = try statement("INSERT INTO large_specs (job, spec) VALUES (?1, ?2)")
            statement.bind(id, at: 1)
            statement.bind(utf8: spec, at: 2)
            try statement.run()
        }
        for tag in job.spec.tags {
            let statement = try statement("INSERT OR IGNORE INTO tags (job, tag) VALUES (?1, ?2)")
            statement.bind(id, at: 1)
            statement.bind(tag, at: 2)
            try statement.run()
        }
        count(bytes: spec.count + size)
        return id
    }

    /// Stores children with their parent; none where the parent was removed.
    func submit(children: [Job], of parent: Job) throws -> [JobID] {
        guard try update(parent) else { return [] }
        return try children.map(insert)
    }

    func save(_ jobs: [Job]) throws {
        for job in jobs { _ = try update(job) }
    }

    /// Stores what has become of a job; false where it was removed.
    private func update(_ job: Job) throws -> Bool {
        let size = JobRow.bindLife(of: job, numbered: job.id, to: updateJob)
        let isThere = try updateJob.run()
        // A failed job can be retried, and then goes on with what it has.
        if job.state == .succeeded || job.state == .cancelled {
            dropNotes.bind(job.id, at: 1)
            try dropNotes.run()
        }
        count(bytes: size)
        return isThere
    }
}
