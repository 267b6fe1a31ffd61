import GRDB
import JobModel

/// How a job is written into a row of the table `jobs`.
enum JobRow {
    /// A larger spec is stored in a table of its own, so that it is not written again with every change of its job.
    static let largestInlineSpec = 1024

    /// How deep a stored value may be nested: a result may be as deep as a request line, and a template can put it
    /// deeper.
    static let maximumDepth = 1024
    /// About what a stored value may take in memory, with what the store writes around it. Lines, documents, expansions and
    /// lists make none that takes more; a row with one would end the daemon at each start, so it counts as damaged.
    static let maximumValues = JobLimits.mostValues + (1 << 20)

    /// The columns as ``job(_:)`` reads them, in the order of `Column`.
    private static let columns = """
        id, owner, state, link, attempt, children, created_at, not_before, deadline_at, started_at, finished_at, \
        link_started_at, stop, host, parent, parent_link, parent_index, parent_depth, carried, last_failure, \
        checkpoint, outcomes, coalesce(spec, (SELECT spec FROM large_specs WHERE job = jobs.id)), crashes, gated, \
        queue, priority, item, size, bodies, caller_groups
        """

    static let select = "SELECT \(columns) FROM jobs WHERE id = ?1"
    /// The same of a job of owner ?2. No column of another's row is read.
    static let selectOwned = select + " AND owner = ?2"

    private enum Column: Int32 {
        case id, owner, state, link, attempt, children, createdAt, notBefore, deadlineAt, startedAt, finishedAt
        case linkStartedAt, stop, host, parent, parentLink, parentIndex, parentDepth, carried, lastFailure
        case checkpoint, outcomes, spec, crashes, gated, queue, priority, item, size, bodies, callerGroups
    }

    /// The stored value that `text` is, and what it takes in memory; nil where it makes no sense.
    static func value(_ text: UnsafeRawBufferPointer) -> (value: JSON, cost: Int)? {
        try? JSONParser.parse(text, maximumDepth: maximumDepth, budget: maximumValues)
    }

    /// Stores the columns that change during a job's life.
    static let update = """
        UPDATE jobs SET state = ?2, link = ?3, attempt = ?4, children = ?5, not_before = ?6, deadline_at = ?7, \
        started_at = ?8, finished_at = ?9, link_started_at = ?10, stop = ?11, host = ?12, carried = ?13, \
        last_failure = ?14, checkpoint = ?15, outcomes = ?16, crashes = ?17, gated = ?18, size = ?19, bodies = ?20 \
        WHERE id = ?1
        """

    /// Binds the columns that change during a job's life; gives the size of the texts. `storedSize` is what the job
    /// counts for; `longOutcome` is what it carries where that stands in a table of its own.
    ///
    /// Texts are kept in `texts` until the statement has run.
    static func bindLife(
        of job: Job, numbered id: JobID, storedSize: Int64, longOutcome: JSON?, to statement: PreparedStatement,
        texts: BoundTexts
    ) -> Int {
        statement.bind(id, at: 1)
        statement.bind(job.state.code, at: 2)
        statement.bind(job.link, at: 3)
        statement.bind(job.attempt, at: 4)
        statement.bind(job.children, at: 5)
        statement.bind(job.notBefore, at: 6)
        statement.bind(job.deadlineAt, at: 7)
        statement.bind(job.startedAt, at: 8)
        statement.bind(job.finishedAt, at: 9)
        statement.bind(job.linkStartedAt, at: 10)
        statement.bind(job.stop?.rawValue, at: 11)
        statement.bind(job.host, at: 12)
        var size = 0
        func bind(_ json: JSON?, at index: Int32) {
            guard let json else { return }
            let utf8 = json.utf8
            statement.bind(utf8: utf8, at: index, keptIn: texts)
            size += utf8.count
        }
        if longOutcome == nil { bind(job.carried?.json, at: 13) }
        bind(job.lastFailure?.json, at: 14)
        bind(job.failedLink?.json, at: 15)
        if !job.outcomes.isEmpty { bind(.array(job.outcomes.map(\.json)), at: 16) }
        statement.bind(job.crashes, at: 17)
        statement.bind(job.isGated ? 1 : 0, at: 18)
        statement.bind(storedSize, at: 19)
        if !job.bodies.isEmpty { bind(StoredBodies.json(job.bodies), at: 20) }
        return size
    }

    /// The job in the present row of a statement that selects ``columns``.
    ///
    /// The long result of a succeeded job is left in the store unless `withLongResult`.
    static func job(
        _ row: PreparedStatement, withLongResult: Bool, _ templates: TemplateCache, _ connection: Database
    ) throws -> Job {
        let id = row.integer(Column.id.rawValue)
        func damaged(_ what: String, _ underlying: (any Error)? = nil) -> StoreError {
            StoreError(
                .read, "Job \(id) cannot be read from the database, as its \(what) makes no sense; remove the job.",
                underlying: underlying)
        }
        func json(_ column: Column, _ what: String) throws(StoreError) -> JSON? {
            let parsed = row.utf8(column.rawValue) { utf8 in
                Result { () throws(JSONSyntaxError) in
                    try JSONParser.parse(utf8, maximumDepth: maximumDepth, budget: maximumValues).value
                }
            }
            do { return try parsed?.get() } catch { throw damaged(what, error) }
        }

        guard let state = JobState(code: row.integer(Column.state.rawValue)) else { throw damaged("state") }
        guard let owner = UInt32(exactly: row.integer(Column.owner.rawValue)) else { throw damaged("owner") }
        // Counters must have room to be counted up.
        let counts = 0...Int(Int32.max)
        let parent = row.optionalInteger(Column.parent.rawValue).map { parent in
            Job.Parent(
                job: parent, link: Int(row.integer(Column.parentLink.rawValue)),
                index: Int(row.integer(Column.parentIndex.rawValue)),
                depth: Int(row.integer(Column.parentDepth.rawValue)))
        }
        if let parent {
            guard counts.contains(parent.link), counts.contains(parent.index), counts.contains(parent.depth) else {
                throw damaged("parent")
            }
        }
        let spec: JobSpec
        if let isInline = row.utf8(Column.item.rawValue, { !$0.isEmpty }) {
            guard let parent, let item = try json(isInline ? .item : .spec, "item") else { throw damaged("item") }
            guard let template = try templates.template(of: parent) else { throw damaged("template") }
            do {
                spec = try JobSpecReader.child(
                    of: template, item: item, index: parent.index, queue: row.text(Column.queue.rawValue) ?? "",
                    priority: Int(row.integer(Column.priority.rawValue)))
            } catch { throw damaged("template", error) }
        } else {
            guard let written = try json(.spec, "spec") else { throw damaged("spec") }
            do { spec = try JobSpecReader.stored(written) } catch { throw damaged("spec", error) }
        }
        var job = Job(
            id: id, spec: spec, owner: owner, parent: parent, state: state,
            createdAt: Timestamp(milliseconds: row.integer(Column.createdAt.rawValue)),
            notBefore: row.time(Column.notBefore.rawValue), deadlineAt: row.time(Column.deadlineAt.rawValue))
        job.groups = try row.text(Column.callerGroups.rawValue).map { text in
            guard let groups = CallerGroups(stored: text) else { throw damaged("groups") }
            return groups
        }
        job.startedAt = row.time(Column.startedAt.rawValue)
        job.finishedAt = row.time(Column.finishedAt.rawValue)
        job.linkStartedAt = row.time(Column.linkStartedAt.rawValue)
        job.link = Int(row.integer(Column.link.rawValue))
        job.attempt = Int(row.integer(Column.attempt.rawValue))
        job.children = Int(row.integer(Column.children.rawValue))
        guard (0...spec.links.count).contains(job.link) else { throw damaged("link") }
        job.crashes = Int(row.integer(Column.crashes.rawValue))
        job.isGated = row.integer(Column.gated.rawValue) != 0
        guard [job.attempt, job.children, job.crashes].allSatisfy(counts.contains) else { throw damaged("count") }
        job.host = row.text(Column.host.rawValue)
        if let stop = row.text(Column.stop.rawValue) {
            guard let known = Job.Stop(rawValue: stop) else { throw damaged("stop") }
            job.stop = known
        }
        if let carried = try json(.carried, "result") {
            guard let outcome = Outcome(json: carried) else { throw damaged("result") }
            job.carried = outcome
        } else if row.integer(Column.size.rawValue) > LongOutcome.threshold,
            let long = try LongOutcome(of: id, in: connection)
        {
            if state == .succeeded, !withLongResult, long.resultSize > Job.longestResultRead {
                job.storedResult = long.resultSize
                job.carried = .success(.null)
            } else {
                let text = try long.bytes(offset: 0, length: long.size)
                guard
                    let json = try? JSON(parsing: text, maximumDepth: maximumDepth, budget: maximumValues),
                    let outcome = Outcome(json: json)
                else { throw damaged("result") }
                job.carried = outcome
            }
        }
        job.lastFailure = try json(.lastFailure, "last failure").map(JobError.init(json:))
        if let written = try json(.checkpoint, "failed link") {
            guard let failedLink = Job.FailedLink(json: written), (0...spec.links.count).contains(failedLink.link)
            else { throw damaged("failed link") }
            job.failedLink = failedLink
        }
        for written in try json(.outcomes, "list of outcomes")?.array ?? [] {
            guard let outcome = LinkOutcome(json: written) else { throw damaged("list of outcomes") }
            job.outcomes.append(outcome)
        }
        if let written = try json(.bodies, "list of bodies") {
            guard let bodies = StoredBodies.sizes(written) else { throw damaged("list of bodies") }
            job.bodies = bodies
        }
        return job
    }
}
