import GRDB
import JobModel
import Synchronization

/// Answers questions inside a read transaction of one connection.
struct Reader {
    let connection: Database
    let unreadable: UnreadableJobs
    let templates: TemplateCache

    init(connection: Database, unreadable: UnreadableJobs) {
        self.connection = connection
        self.unreadable = unreadable
        templates = TemplateCache(connection)
    }

    func statement(_ sql: String) throws -> PreparedStatement { try PreparedStatement(sql, on: connection) }

    // MARK: Single jobs

    /// The jobs of these ids, without long results, and without unreadable jobs.
    func jobs(_ ids: [JobID], owner: UInt32? = nil) throws -> [Job] {
        let select = try statement(owner == nil ? JobRow.select : JobRow.selectOwned)
        return try ids.compactMap { try legibleJob($0, select, owner: owner, withLongResult: false) }
    }

    /// The states of these jobs, as far as there are such.
    func states(of ids: [JobID], owner: UInt32?) throws -> [JobID: JobState] {
        let statement = try statement(
            "SELECT state FROM jobs WHERE id = ?1\(owner == nil ? "" : " AND owner = ?2")")
        var states: [JobID: JobState] = [:]
        for id in ids {
            statement.bind(id, at: 1)
            if let owner { statement.bind(Int64(owner), at: 2) }
            states[id] = try statement.row { JobState(code: $0.integer(0)) } ?? nil
        }
        return states
    }

    /// A page of these jobs, without long results, and without unreadable jobs.
    func page(_ ids: [JobID], owner: UInt32? = nil) throws -> StoredJobPage {
        let select = try statement(owner == nil ? JobRow.select : JobRow.selectOwned)
        var page = StoredJobPage(limit: ids.count)
        for id in ids where page.mayGrow {
            if let job = try legibleJob(id, select, owner: owner, withLongResult: false) { page.append(job) }
        }
        return page
    }

    /// A page of the jobs whose ids a statement selects, without unreadable ones.
    private func page(selectedBy numbers: PreparedStatement, limit: Int) throws -> StoredJobPage {
        defer { numbers.reset() }
        let select = try statement(JobRow.select)
        var page = StoredJobPage(limit: limit)
        while page.mayGrow, try numbers.step() {
            if let job = try legibleJob(numbers.integer(0), select) { page.append(job) }
        }
        return page
    }

    /// The jobs whose ids a statement selects, without unreadable ones.
    func jobs(selectedBy numbers: PreparedStatement, atMost limit: Int) throws -> [Job] {
        let select = try statement(JobRow.select)
        return try numbers.rows(atMost: limit) { row in try legibleJob(row.integer(0), select) }
    }

    func legibleJob(
        _ id: JobID, _ select: PreparedStatement, owner: UInt32? = nil, withLongResult: Bool = true
    ) throws -> Job? {
        select.bind(id, at: 1)
        if let owner { select.bind(Int64(owner), at: 2) }
        do {
            return try select.row { row in
                try JobRow.job(row, withLongResult: withLongResult, templates, connection)
            }
        } catch let error as StoreError {
            unreadable.tell(of: id, error)
            return nil
        }
    }

    /// A part of the result of a job; nil where it has none.
    func result(of job: JobID, offset: Int, length: Int) throws -> ResultPart? {
        let select = try statement(
            "SELECT carried, size FROM jobs WHERE id = ?1 AND state = \(JobState.succeeded.code)")
        select.bind(job, at: 1)
        let found = try select.row { row in
            let result = row.utf8(0) { text in
                Array(text.dropFirst(LongOutcome.resultHead.count).dropLast(LongOutcome.resultTail.count))
            }
            return (result: result, mayBeLong: row.integer(1) > LongOutcome.threshold)
        }
        guard let found else { return nil }
        if let result = found.result { return ResultPart(of: result, offset: offset, length: length) }
        return found.mayBeLong
            ? try LongOutcome(of: job, in: connection)?.result(offset: offset, length: length) : nil
    }

    // MARK: Times

    func due(at time: Timestamp, limit: Int) throws -> [Job] {
        try first(
            limit, "SELECT id FROM jobs WHERE state = 0 AND not_before <= ?1 ORDER BY not_before, id", at: time)
    }

    func overdue(at time: Timestamp, limit: Int) throws -> [Job] {
        try first(
            limit, "SELECT id FROM jobs WHERE state < 3 AND deadline_at <= ?1 ORDER BY deadline_at, id", at: time)
    }

    private func first(_ limit: Int, _ sql: String, at time: Timestamp) throws -> [Job] {
        let statement = try statement(sql)
        statement.bind(time, at: 1)
        return try page(selectedBy: statement, limit: limit).jobs
    }

    func nextTimes() throws -> (due: Timestamp?, deadline: Timestamp?) {
        (
            try statement("SELECT min(not_before) FROM jobs WHERE state = 0").row { $0.time(0) },
            try statement("SELECT min(deadline_at) FROM jobs WHERE state < 3 AND deadline_at IS NOT NULL")
                .row { $0.time(0) }
        )
    }

    /// When the first and the last finished root job ended.
    func ends() throws -> (first: Timestamp?, last: Timestamp?) {
        let first = try statement("SELECT min(finished_at) FROM jobs WHERE \(Self.finished) AND owner = ?1")
        let last = try statement("SELECT max(finished_at) FROM jobs WHERE \(Self.finished) AND owner = ?1")
        var ends: (first: Timestamp?, last: Timestamp?) = (nil, nil)
        for owner in try finishedOwners() {
            for statement in [first, last] { statement.bind(owner, at: 1) }
            if let time = try first.row({ $0.time(0) }) { ends.first = min(time, ends.first ?? time) }
            if let time = try last.row({ $0.time(0) }) { ends.last = max(time, ends.last ?? time) }
        }
        return ends
    }

    // MARK: Children

    func children(of parent: JobID, link: Int, from start: Int, limit: Int) throws -> StoredJobPage {
        let statement = try statement(
            """
            SELECT id FROM jobs WHERE parent = ?1 AND parent_link = ?2 AND parent_index >= ?3 ORDER BY parent_index
            """)
        statement.bind(parent, at: 1)
        statement.bind(link, at: 2)
        statement.bind(start, at: 3)
        return try page(selectedBy: statement, limit: limit)
    }

    func childStates(of parent: JobID, link: Int) throws -> [ChildState] {
        let statement = try statement(
            "SELECT id, state, parent_index FROM jobs WHERE parent = ?1 AND parent_link = ?2 ORDER BY parent_index")
        statement.bind(parent, at: 1)
        statement.bind(link, at: 2)
        return try statement.rows { row in
            JobState(code: row.integer(1)).map {
                ChildState(id: row.integer(0), index: Int(row.integer(2)), state: $0)
            }
        }
    }

    // MARK: All jobs

    func counts() throws -> [JobCount] {
        try statement(
            """
            SELECT owner, queue, state, count(*), sum(size) FROM jobs INDEXED BY jobs_by_kind \
            GROUP BY owner, queue, state
            """
        ).rows { row in
            guard let owner = UInt32(exactly: row.integer(0)), let state = JobState(code: row.integer(2)) else {
                return nil
            }
            return JobCount(
                owner: owner, queue: row.text(1) ?? "", state: state, count: Int(row.integer(3)), bytes: row.integer(4))
        }
    }

    // MARK: Finished root jobs

    /// What they are, as the index on them says it.
    static let finished = "state >= 3 AND parent IS NULL"

    /// Their owners, in order, each found by one step in the index.
    func finishedOwners() throws -> [Int64] {
        let next = try statement("SELECT min(owner) FROM jobs WHERE \(Self.finished) AND owner > ?1")
        var owners: [Int64] = []
        while true {
            next.bind(owners.last ?? -1, at: 1)
            guard let owner = try next.row({ $0.optionalInteger(0) }) else { return owners }
            owners.append(owner)
        }
    }

    /// The last one of each owner that may go, where those that ended before `time` may and about `total` of all stay.
    func purgeable(before time: Timestamp, keeping total: Int) throws -> [FinishedEnd] {
        let count = try statement("SELECT count(*) FROM jobs WHERE \(Self.finished) AND owner = ?1")
        let owners = try finishedOwners().map { owner in
            count.bind(owner, at: 1)
            return (owner, count: try count.row { Int($0.integer(0)) } ?? 0)
        }
        let most = RetentionShares.most(of: owners.map(\.count), keeping: total)
        let expired = FinishedPosition(finishedAt: time, id: 0)
        return try owners.map { owner, count in
            let excess = try most.flatMap { count > $0 ? try latestFinished(of: owner, behind: $0) : nil }
            return FinishedEnd(owner: owner, last: excess.map { $0.finishedAt >= time ? $0 : expired } ?? expired)
        }
    }

    /// The latest one of an owner behind the latest `kept`, or nil where there are no more than these.
    private func latestFinished(of owner: Int64, behind kept: Int) throws -> FinishedPosition? {
        let statement = try statement(
            """
            SELECT finished_at, id FROM jobs WHERE \(Self.finished) AND owner = ?1 \
            ORDER BY finished_at DESC, id DESC LIMIT 1 OFFSET ?2
            """)
        statement.bind(owner, at: 1)
        statement.bind(kept, at: 2)
        return try statement.row { row in
            row.time(0).map { FinishedPosition(finishedAt: $0, id: row.integer(1)) }
        }
    }

    // MARK: Beside the jobs

    func queues() throws -> [QueueSettings] {
        try statement("SELECT name, concurrency, is_suspended, per_user FROM queues ORDER BY name").rows { row in
            QueueSettings(
                name: row.text(0) ?? "", concurrency: Int(row.integer(1)),
                perUser: row.optionalInteger(3).map(Int.init), isSuspended: row.integer(2) != 0)
        }
    }

    func checkpoint(of job: JobID, link: Int) throws -> JSON? {
        let statement = try statement("SELECT note FROM notes WHERE job = ?1 AND link = ?2")
        statement.bind(job, at: 1)
        statement.bind(link, at: 2)
        return try statement.row { row in try row.json(0, "The checkpoint of job \(job) at link \(link)") }
    }

    func checkpoints(of job: JobID, links: ClosedRange<Int>) throws -> [Int: JSON] {
        let statement = try statement("SELECT link, note FROM notes WHERE job = ?1 AND link BETWEEN ?2 AND ?3")
        statement.bind(job, at: 1)
        statement.bind(links.lowerBound, at: 2)
        statement.bind(links.upperBound, at: 3)
        let found = try statement.rows { row in (Int(row.integer(0)), try? row.json(1, "A checkpoint")) }
        return Dictionary(found.compactMap { link, note in note.map { (link, $0) } }, uniquingKeysWith: { $1 })
    }

    /// Without those whose checkpoints make no sense, which nobody can go on with.
    func unfinishedTransfers(of job: JobID?, atMost limit: Int) throws -> [UnfinishedTransfer] {
        let statement = try statement(
            """
            SELECT notes.job, jobs.owner, notes.link, note FROM notes CROSS JOIN jobs ON jobs.id = notes.job \
            WHERE \(job == nil ? "" : "notes.job = ?1 AND ")state < 3 AND jobs.link = notes.link ORDER BY notes.job
            """)
        if let job { statement.bind(job, at: 1) }
        return try statement.rows(atMost: limit) { row in
            guard let owner = UInt32(exactly: row.integer(1)), let checkpoint = try? row.json(3, "The checkpoint")
            else { return nil }
            return UnfinishedTransfer(
                job: row.integer(0), owner: owner, link: Int(row.integer(2)), checkpoint: checkpoint)
        }
    }

    func download(to path: String) throws -> JSON? {
        let statement = try statement("SELECT record FROM downloads WHERE path = ?1")
        statement.bind(path, at: 1)
        return try statement.row { row in try row.json(0, "The record of the download to \(path)") }
    }
}

extension PreparedStatement {
    /// Reads JSON text; `what` it is, for the message.
    fileprivate func json(_ column: Int32, _ what: String) throws -> JSON? {
        let parsed = utf8(column) { utf8 in
            Result {
                try JSONParser.parse(utf8, maximumDepth: JobRow.maximumDepth, budget: JobRow.maximumValues).value
            }
        }
        do { return try parsed?.get() } catch {
            throw StoreError(.read, "\(what) in the database makes no sense; remove it.", underlying: error)
        }
    }
}

/// A position among the finished root jobs, in the order of their ends.
struct FinishedPosition: Sendable, Equatable {
    let finishedAt: Timestamp
    /// Orders jobs that ended in the same millisecond; 0 comes before all of them.
    let id: JobID
}

/// The last finished root job of an owner that may go.
struct FinishedEnd: Sendable, Equatable {
    let owner: Int64
    let last: FinishedPosition
}

/// The jobs whose rows could not be read, each reported once.
final class UnreadableJobs: Sendable {
    /// Beyond so many, jobs are left out of lists without a report.
    private static let limit = 1000

    private let report: @Sendable (StoreError) -> Void
    private let known = Mutex<Set<JobID>>([])
    private let isDamageKnown = Mutex(false)

    init(_ report: @escaping @Sendable (StoreError) -> Void) {
        self.report = report
    }

    func tell(of job: JobID, _ error: StoreError) {
        let isNew = known.withLock { $0.count < Self.limit && $0.insert(job).inserted }
        if isNew { report(error) }
    }

    /// A schedule cannot be read. It is found at a start only, so it is reported each time.
    func tell(ofSchedule error: StoreError) { report(error) }

    /// A page is damaged, which jobs stood there nobody knows.
    func tell(ofDamage error: StoreError) {
        let isNew = isDamageKnown.withLock { isKnown in
            defer { isKnown = true }
            return !isKnown
        }
        if isNew { report(error) }
    }
}
