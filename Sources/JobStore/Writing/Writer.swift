import GRDB
import GRDBSQLite
import JobModel

/// Carries out changes inside a transaction of the one connection that writes.
final class Writer {
    private let connection: Database
    private let file: GrowingFile
    private let newJobs: NewJobRows
    private let texts = BoundTexts()
    private let insertTag: PreparedStatement
    private let updateJob: PreparedStatement
    private let selectKey: PreparedStatement
    private let dropCheckpoint: PreparedStatement
    private let begin: PreparedStatement
    private let end: PreparedStatement
    private let undo: PreparedStatement
    private let countPages: PreparedStatement
    private let countFreePages: PreparedStatement
    private let pageSize: Int64
    /// Whether a commit failed for lack of room, and none has shown since that there is some.
    var isShortOfRoom = false
    /// Whether this transaction shows that there is.
    private var showsRoom = false
    /// The highest id that a job ever had, as the last commit left it and as this transaction does.
    private(set) var lastJob: (committed: JobID, present: JobID)
    var downloadCount: (committed: Int?, present: Int?) = (nil, nil)
    /// Whether anything was removed since the free pages were last looked at.
    var mayHaveFreePages: Bool
    /// Whether pages were given back to the file system that the file has still to be cut off by.
    var hasReleased = false
    /// Where SQLite leaves the length of the log after each commit, in pages.
    private let logLength: UnsafeMutablePointer<Int32>
    /// The jobs with a long outcome, so that for all others none is looked for; nil where that is not known.
    private var longOutcomes: Set<JobID>?
    /// Of stored specs with a key that were compared, so that each is parsed once, however often its key is submitted.
    private var fingerprints: [JobID: Int] = [:]
    private static let mostFingerprints = 16_384
    /// Rows changed and bytes of text written since the transaction began.
    private(set) var load = (changes: 0, bytes: 0)

    init(_ connection: Database, growing file: GrowingFile) throws {
        self.connection = connection
        self.file = file
        logLength = .allocate(capacity: 1)
        logLength.initialize(to: 0)
        mayHaveFreePages = try Int.fetchOne(connection, sql: "PRAGMA freelist_count") ?? 0 > 0
        func prepare(_ sql: String) throws -> PreparedStatement {
            PreparedStatement(try connection.makeStatement(sql: sql))
        }
        newJobs = try NewJobRows(connection)
        insertTag = try prepare("INSERT OR IGNORE INTO tags (job, tag, owner) VALUES (?1, ?2, ?3)")
        updateJob = try prepare(JobRow.update)
        selectKey = try prepare(
            """
            SELECT id, state, coalesce(spec, (SELECT spec FROM large_specs WHERE job = jobs.id)) FROM jobs \
            WHERE owner = ?1 AND key = ?2
            """)
        dropCheckpoint = try prepare("DELETE FROM notes WHERE job = ?1 AND link = ?2")
        begin = try prepare("BEGIN IMMEDIATE")
        end = try prepare("COMMIT")
        undo = try prepare("ROLLBACK")
        countPages = try prepare("PRAGMA page_count")
        countFreePages = try prepare("PRAGMA freelist_count")
        pageSize = try Int64.fetchOne(connection, sql: "PRAGMA page_size") ?? 4096
        let last = try Int64.fetchOne(
            connection,
            sql: "SELECT max(value, coalesce((SELECT max(id) FROM jobs), 0)) FROM state WHERE name = 'last_job'")
        // Beyond this JSON has no room for their ids.
        guard (0...1 << 53).contains(last ?? 0) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "the id of the last job makes no sense")
        }
        lastJob = (last ?? 0, last ?? 0)
        // Instead of SQLite's own hook, which would write the log into the database before a commit returns.
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
        showsRoom = false
        do {
            try begin.run()
            let pages = try number(countPages)
            try body()
            let grown = try number(countPages)
            if grown > pages { try Room.have(grown * pageSize, in: file, for: connection) }
            try end.run()
            if showsRoom { isShortOfRoom = false }
            lastJob.committed = lastJob.present
            downloadCount.committed = downloadCount.present
        } catch {
            // Some failures have undone the transaction already.
            if connection.isInsideTransaction { _ = try? undo.run() }
            longOutcomes = nil
            lastJob.present = lastJob.committed
            downloadCount.present = downloadCount.committed
            throw error
        }
    }

    private func number(_ statement: PreparedStatement) throws -> Int64 {
        try statement.row { $0.integer(0) } ?? 0
    }

    /// Throws where there is no room for a few more jobs, though the last ones found none.
    func checkRoom() throws {
        guard isShortOfRoom else { return }
        let few: Int64 = 16
        if try number(countFreePages) < few {
            try Room.have((try number(countPages) + few) * pageSize, in: file, for: connection)
        }
        showsRoom = true
    }

    /// The most jobs that one transaction removes; where room is short it has to be little that goes to the log.
    var largestRemoval: Int { isShortOfRoom ? 20 : 2_000 }

    /// The pages in the log after the last commit.
    var pagesInLog: Int { Int(logLength.pointee) }

    /// Writes the log into the database, as far as no reader needs it.
    func checkpoint() throws {
        try connection.checkpoint(.passive)
    }

    /// Writes all of the log into the database, so that the next commit takes up its room anew.
    func restartLog() throws {
        try connection.checkpoint(.restart)
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
        // Those that no job needs to be compared with are inserted together.
        var start = 0
        var keys: Set<OwnedKey> = []
        func insertRun(upTo end: Int) throws {
            let run = jobs[start..<end]
            for id in try insert(run.map { NewRow($0) }, of: run) { submissions.append(.created(id)) }
            start = end
            keys.removeAll()
        }
        // By index, as most have no key and a copy of a job is counted in all of its parts.
        for index in jobs.indices {
            guard jobs[index].parent == nil, let key = jobs[index].spec.key else { continue }
            let isFirst = keys.insert(OwnedKey(owner: jobs[index].owner, key: key)).inserted
            if !isFirst { try insertRun(upTo: index) }
            guard let earlier = try earlier(jobs[index]) else { continue }
            try insertRun(upTo: index)
            submissions.append(earlier)
            start = index + 1
        }
        try insertRun(upTo: jobs.count)
        return submissions
    }

    private struct OwnedKey: Hashable {
        let owner: UInt32
        let key: String
    }

    /// What became of `job` where its key is taken.
    private func earlier(_ job: Job) throws -> Submission? {
        guard job.parent == nil, let key = job.spec.key else { return nil }
        selectKey.bind(Int64(job.owner), at: 1)
        selectKey.bind(key, at: 2)
        return try selectKey.row { row in
            let id = row.integer(0)
            // A transaction has an end, whether anything is stored or not.
            count()
            // Of a long one the text is read, and its values are, only where these may be the same.
            if let known = fingerprints[id], known != job.spec.fingerprint ?? job.spec.json.hashValue {
                return .conflict(id)
            }
            let isSame = row.utf8(2) { stored in
                count(bytes: stored.count)
                if (job.spec.text ?? job.spec.json.utf8).elementsEqual(stored) { return true }
                guard let earlier = JobRow.value(stored)?.value else { return false }
                if stored.count > JobSpec.longSpec {
                    if fingerprints.count >= Self.mostFingerprints { fingerprints = [:] }
                    fingerprints[id] = earlier.hashValue
                }
                return earlier == job.spec.json
            }
            guard isSame == true, let state = JobState(code: row.integer(1)) else { return .conflict(id) }
            return .joined(id, state)
        }
    }

    /// Inserts the rows of jobs that begin; gives their ids.
    private func insert(_ rows: [NewRow], of jobs: ArraySlice<Job>) throws -> Range<JobID> {
        let first = lastJob.present + 1
        try newJobs.insert(rows, from: first)
        lastJob.present += JobID(rows.count)
        for offset in rows.indices {
            let id = first + JobID(offset)
            let index = jobs.startIndex + offset
            if !NewJobRows.isWhole(jobs[index]) {
                try update(jobs[index], numbered: id, storedSize: rows[offset].size)
            }
            if let large = rows[offset].large {
                let statement = try statement("INSERT INTO large_specs (job, spec) VALUES (?1, ?2)")
                statement.bind(id, at: 1)
                statement.bind(utf8: large, at: 2)
                try statement.run()
            }
            for tag in rows[offset].tags {
                insertTag.bind(id, at: 1)
                insertTag.bind(tag, at: 2)
                insertTag.bind(Int64(rows[offset].start.owner), at: 3)
                try insertTag.run()
            }
            count(bytes: rows[offset].bytes)
        }
        return first..<lastJob.present + 1
    }

    /// Stores what a link makes, with the job that it belongs to; none where that was removed.
    func insert(_ new: NewChildren) throws -> [JobID] {
        let parent = new.parent
        guard try update(parent, numbered: parent.id, storedSize: parent.storedSize) else { return [] }
        if let template = new.template {
            let statement = try statement(
                "INSERT OR REPLACE INTO templates (parent, link, size, template) VALUES (?1, ?2, ?3, ?4)")
            let text = template.utf8
            statement.bind(parent.id, at: 1)
            statement.bind(parent.link, at: 2)
            statement.bind(template.size, at: 3)
            statement.bind(utf8: text, at: 4)
            try statement.run()
            count(bytes: text.count)
        }
        // The parent's spec stands in for theirs, of which nothing is stored but what the rows say.
        let jobs = new.children.map { $0.job(of: parent, parent.spec) }
        return Array(try insert(zip(new.children, jobs).map { NewRow($0, $1) }, of: jobs[...]))
    }

    /// Removes what a job carried where that stands in parts.
    func removeLongOutcome(of job: JobID) throws {
        if longOutcomes == nil {
            longOutcomes = Set(try statement("SELECT DISTINCT job FROM long_outcomes").rows { $0.integer(0) })
        }
        guard longOutcomes?.contains(job) == true else { return }
        try LongOutcome.remove(of: job, in: connection)
        longOutcomes?.remove(job)
    }

    func save(_ jobs: [Job]) throws {
        for job in jobs { try update(job, numbered: job.id, storedSize: job.storedSize) }
    }

    /// Stores what has become of a job; false where it was removed.
    @discardableResult
    private func update(_ job: Job, numbered id: JobID, storedSize: Int64) throws -> Bool {
        defer { texts.removeAll() }
        let longOutcome = storedSize > LongOutcome.threshold ? LongOutcome.json(of: job) : nil
        var size = JobRow.bindLife(
            of: job, numbered: id, storedSize: storedSize, longOutcome: longOutcome, to: updateJob, texts: texts)
        let isThere = try updateJob.run()
        try removeLongOutcome(of: id)
        if let longOutcome, isThere {
            try LongOutcome.insert(longOutcome, of: id, in: connection)
            longOutcomes?.insert(id)
            size = size.saturatingAdding(longOutcome.size)
        }
        // A failed job can be retried, and then goes on with what it has. Of other links, and of a cancelled job, there are
        // those only whose files could not be removed yet, which is tried again with the job.
        if job.state == .succeeded {
            dropCheckpoint.bind(id, at: 1)
            dropCheckpoint.bind(job.link, at: 2)
            try dropCheckpoint.run()
        }
        count(bytes: size)
        return isThere
    }
}
