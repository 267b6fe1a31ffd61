package import JobModel

/// How a job is written into a row of the table `jobs`.
package enum JobColumns {
    /// The columns in the order of the table; of those before `state`, only the terms can be replaced.
    private enum Column: Int32, CaseIterable {
        case id, owner, queue, source, priority, key, digest, parent, parentLink, list, parentIndex, createdAt, keepsKey
        case label, submitted
        case state, waiting, removing, awaited, crashes, version, link, host, runLife, due, notBefore, deadline
        case finishedAt, life, carried

        /// Its name in SQL.
        var name: String {
            "\(self)".reduce(into: "") { $0 += $1.isUppercase ? "_\($1.lowercased())" : String($1) }
        }
    }

    package static let all = Column.allCases.map(\.name)
    package static let selected = all.joined(separator: ", ")
    package static let selectedCount = Int32(all.count)
    /// A longer spec or item is not in the row, so that changes of the row need not write it again; in bytes.
    static let longestText = 1024

    /// Stands for a file that a job's own row names, and not the template of one of its lists.
    package static let ownRow = -1

    /// Stores what changes in the row ?1. The parameters are those of a new row.
    static let update =
        "UPDATE jobs SET "
        + Column.allCases.filter { $0.rawValue >= Column.state.rawValue }
        .map { "\($0.name) = ?\($0.rawValue + 1)" }.joined(separator: ", ") + " WHERE id = ?1"

    /// Stores the terms in the row ?1.
    package static let replaceTerms =
        "UPDATE jobs SET queue = ?2, priority = ?3, label = ?4, submitted = ?5 WHERE id = ?1"

    // MARK: Writing

    /// Binds a new row from the parameter behind `start` on. It is called for each job, so it boxes no value.
    package static func bind(_ row: consuming JobRow, digest: UInt64, to statement: any Bindings, behind start: Int32) {
        func at(_ column: Column) -> Int32 { start + column.rawValue + 1 }
        statement.bind(Int64(row.owner), at: at(.owner))
        statement.bind(row.queue, at: at(.queue))
        statement.bind(row.plan.source.source.map { Int64($0.code) } ?? -1, at: at(.source))
        statement.bind(Int64(row.priority), at: at(.priority))
        statement.bind(row.key, at: at(.key))
        statement.bind(row.key == nil ? nil : Int64(bitPattern: digest), at: at(.digest))
        statement.bind(row.parent?.job, at: at(.parent))
        statement.bind(row.parent.map { Int64($0.link) }, at: at(.parentLink))
        statement.bind(row.parent?.list, at: at(.list))
        statement.bind(row.parent.map { Int64($0.index) }, at: at(.parentIndex))
        statement.bind(row.createdAt.milliseconds, at: at(.createdAt))
        statement.bind(row.terms.keepsKey ? 1 : 0, at: at(.keepsKey))
        statement.bind(row.label, at: at(.label))
        statement.bind(submitted(row), at: at(.submitted))
        bindChanging(row, to: statement, behind: start)
    }

    /// Binds the id and what changes.
    package static func bindChanging(_ row: consuming JobRow, to statement: any Bindings, behind start: Int32 = 0) {
        func at(_ column: Column) -> Int32 { start + column.rawValue + 1 }
        statement.bind(row.id, at: at(.id))
        statement.bind(Int64(row.state.code), at: at(.state))
        statement.bind(Int64(row.waiting.rawValue), at: at(.waiting))
        statement.bind(row.isRemoving ? 1 : 0, at: at(.removing))
        statement.bind(row.hasDependents ? 1 : 0, at: at(.awaited))
        statement.bind(Int64(row.crashes), at: at(.crashes))
        statement.bind(row.version, at: at(.version))
        statement.bind(Int64(row.link), at: at(.link))
        statement.bind(row.host, at: at(.host))
        statement.bind(row.run?.life, at: at(.runLife))
        statement.bind(row.due, at: at(.due))
        statement.bind(row.notBefore?.milliseconds, at: at(.notBefore))
        statement.bind(row.deadline, at: at(.deadline))
        statement.bind(row.finishedAt?.milliseconds, at: at(.finishedAt))
        statement.bind(row.carried?.encoded, at: at(.carried))
        let life = ByteCoder.bytes { coder throws(DamagedRow) in try Self.life(of: &row, by: &coder) }
        statement.bind(life, at: at(.life))
    }

    /// The blob with the parts of the submitted values that no query asks for.
    package static func submitted(_ row: JobRow) -> [UInt8] {
        let parts = (row.specSize, row.storedSpecSize, row.parent?.depth ?? 0, row.groups, row.tags, row.plan)
        return ByteCoder.bytes { coder throws(DamagedRow) in _ = try submitted(parts, by: &coder) }
    }

    // MARK: Reading

    /// The id in the present row of a statement that selects ``selected``.
    package static func id(_ row: some StoredColumns) -> JobID { row.integer(Column.id.rawValue) }

    /// The bytes of the blobs in the row of a ``StoredJob``.
    static func size(_ row: some StoredColumns) -> Int {
        let blobs = [Column.submitted, .life, .carried].map(\.rawValue) + [selectedCount, selectedCount + 1]
        return blobs.reduce(0) { size, column in size + row.withBytes(column) { $0.count } }
    }

    /// The job in the present row of a statement that selects ``selected``.
    package static func row(_ row: some StoredColumns) throws(DamagedRow) -> JobRow {
        func number(_ column: Column) -> Int64 { row.integer(column.rawValue) }
        func count(_ column: Column) throws(DamagedRow) -> Int { try row.count(column.rawValue) }
        var job = try submitted(row)
        guard let waiting = JobRow.Waiting(rawValue: Int(number(.waiting))),
            // It grows by one with each change.
            (0...1 << 56).contains(number(.version))
        else { throw DamagedRow() }
        job.waiting = waiting
        job.isRemoving = number(.removing) != 0
        job.hasDependents = number(.awaited) != 0
        job.crashes = try count(.crashes)
        job.version = number(.version)
        job.link = try count(.link)
        job.host = row.text(Column.host.rawValue)
        job.due = row.optionalInteger(Column.due.rawValue)
        job.notBefore = row.time(Column.notBefore.rawValue)
        job.deadline = row.optionalInteger(Column.deadline.rawValue)
        job.finishedAt = row.time(Column.finishedAt.rawValue)
        job.run = row.optionalInteger(Column.runLife.rawValue).map { RunID(life: $0, number: 0) }
        try row.decoded(Column.life.rawValue) { coder throws(DamagedRow) in try life(of: &job, by: &coder) }
        job.carried = try row.carried(Column.carried.rawValue)
        return job
    }

    /// The job with what never changes, and its state.
    private static func submitted(_ row: some StoredColumns) throws(DamagedRow) -> JobRow {
        guard let queue = row.text(Column.queue.rawValue), let createdAt = row.time(Column.createdAt.rawValue) else {
            throw DamagedRow()
        }
        let (link, index) = (try row.count(Column.parentLink.rawValue), try row.count(Column.parentIndex.rawValue))
        let rest = try row.decoded(Column.submitted.rawValue) { coder throws(DamagedRow) in
            try submitted(nil, by: &coder)
        }
        let parent = row.optionalInteger(Column.parent.rawValue).map {
            JobRow.Parent(
                job: $0, link: link, list: row.integer(Column.list.rawValue), index: index, depth: rest.depth)
        }
        let terms = JobTerms(
            plan: rest.plan, queue: queue, priority: Int(row.integer(Column.priority.rawValue)),
            key: row.text(Column.key.rawValue), keepsKey: row.integer(Column.keepsKey.rawValue) != 0, tags: rest.tags,
            label: row.text(Column.label.rawValue))
        return JobRow(
            id: id(row), owner: try row.owner(Column.owner.rawValue), groups: rest.groups, parent: parent,
            terms: terms, specSize: rest.specSize, storedSpecSize: rest.storedSpecSize, createdAt: createdAt,
            state: try row.state(Column.state.rawValue))
    }

    // MARK: The blobs

    private typealias Submitted = (
        specSize: Int, storedSpecSize: Int, depth: Int, groups: CallerGroups?, tags: [String], plan: JobPlan
    )

    private static func submitted(_ job: Submitted?, by coder: inout ByteCoder) throws(DamagedRow) -> Submitted {
        (
            specSize: try coder.count(job?.specSize), storedSpecSize: try coder.count(job?.storedSpecSize),
            depth: try coder.count(job?.depth),
            groups: try coder.has(job?.groups) ? CallerGroups(stored: coder.text(job?.groups?.text)) : nil,
            tags: try coder.texts(job?.tags), plan: try coder.plan(job?.plan)
        )
    }

    /// Passes the parts of a job that change and that no query asks for.
    private static func life(of job: inout JobRow, by coder: inout ByteCoder) throws(DamagedRow) {
        let run = try coder.number(job.run?.number ?? 0)
        guard (0...1 << 56).contains(run) || !coder.isReading else { throw DamagedRow() }
        job.run = job.run.map { RunID(life: $0.life, number: run) }
        if try coder.has(job.stop) {
            job.stop = JobRow.Stop(rawValue: try coder.text(job.stop?.rawValue))
            if job.stop == nil { throw DamagedRow() }
        }
        job.awaits = try coder.has(job.awaits) ? coder.number(job.awaits) : nil
        job.notifies = try coder.flag(job.notifies)
        job.rate = try coder.byteRate(job.rate)
        job.url = try coder.has(job.url) ? coder.text(job.url) : nil
        job.startedAt = try coder.has(job.startedAt) ? coder.time(job.startedAt) : nil
        job.linkStartedAt = try coder.has(job.linkStartedAt) ? coder.time(job.linkStartedAt) : nil
        job.attempt = try coder.count(job.attempt)
        job.restarts = try coder.count(job.restarts)
        job.checkpointSize = try coder.count(job.checkpointSize)
        job.children = try coder.count(job.children)
        job.outcomes = try coder.list(job.outcomes) { coder, outcome throws(DamagedRow) in
            let (link, startedAt) = (try coder.count(outcome?.link), try coder.time(outcome?.startedAt))
            let (finishedAt, attempts) = (try coder.time(outcome?.finishedAt), try coder.count(outcome?.attempts))
            let error = try coder.has(outcome?.error) ? coder.error(outcome?.error) : nil
            let url = try coder.has(outcome?.url) ? coder.text(outcome?.url) : nil
            return LinkOutcome(
                link: link, error: error, startedAt: startedAt, finishedAt: finishedAt, attempts: attempts, url: url)
        }
        if try coder.has(job.failedLink) {
            let (link, incoming) = (try coder.count(job.failedLink?.link), job.failedLink?.incoming)
            job.failedLink = JobRow.FailedLink(
                link: link, incoming: try coder.has(incoming) ? coder.carried(incoming) : nil)
        }
        job.lastFailure = try coder.has(job.lastFailure) ? coder.error(job.lastFailure) : nil
        job.blobs = try coder.list(job.blobs) { coder, blob throws(DamagedRow) in
            LinkBlob(
                link: try coder.count(blob?.link), blob: try coder.blob(blob?.blob),
                attempt: try coder.count(blob?.attempt))
        }
        // A slash, which no name has, stands for the flag.
        if try coder.has(job.node) {
            let text = try coder.text(job.node.map { job.followsPart ? $0 + "/" : $0 })
            (job.node, job.followsPart) = (text.replacing("/", with: ""), text.hasSuffix("/"))
        }
    }
}

extension JobRow {
    /// The files that its row names.
    package var references: [BlobReference] {
        var found = blobs.map(\.blob)
        if let blob = carried?.blob { found.append(blob) }
        if let blob = failedLink?.incoming?.blob { found.append(blob) }
        return found
    }
}
