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
    /// What ``NewJobRow/Document/init(_:from:)`` reads.
    static let document =
        "is_item, coalesce(jobs.text, (SELECT documents.text FROM documents WHERE documents.job = jobs.id))"
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
    static let replaceTerms = "UPDATE jobs SET queue = ?2, priority = ?3, label = ?4, submitted = ?5 WHERE id = ?1"

    /// The form of the blobs.
    private static let form: UInt8 = 1

    // MARK: Writing

    /// Binds values of the row whose parameters follow `start`. It is called for each column of each job, so it is not generic.
    private struct Binder {
        let statement: any Bindings
        let start: Int32

        func bind(_ value: Int64?, _ column: Column) {
            if let value { statement.bind(integer: value, at: start + column.rawValue + 1) }
        }

        func bind(_ value: String?, _ column: Column) {
            if let value { statement.bind(text: value, at: start + column.rawValue + 1) }
        }

        func bind(_ value: [UInt8]?, _ column: Column) {
            if let value { statement.bind(bytes: value, at: start + column.rawValue + 1) }
        }
    }

    /// Binds a new row from the parameter behind `start` on.
    package static func bind(_ row: JobRow, digest: UInt64, to statement: any Bindings, behind start: Int32) {
        let binder = Binder(statement: statement, start: start)
        binder.bind(Int64(row.owner), .owner)
        binder.bind(row.queue, .queue)
        binder.bind(row.plan.source.source.map { Int64($0.code) } ?? -1, .source)
        binder.bind(Int64(row.priority), .priority)
        if let key = row.key {
            binder.bind(key, .key)
            binder.bind(Int64(bitPattern: digest), .digest)
        }
        if let parent = row.parent {
            binder.bind(parent.job, .parent)
            binder.bind(Int64(parent.link), .parentLink)
            binder.bind(parent.list, .list)
            binder.bind(Int64(parent.index), .parentIndex)
        }
        binder.bind(row.createdAt.milliseconds, .createdAt)
        binder.bind(row.terms.keepsKey ? 1 : 0, .keepsKey)
        binder.bind(row.label, .label)
        binder.bind(submitted(row), .submitted)
        bindChanging(row, to: statement, behind: start)
    }

    /// Binds the id and what changes.
    package static func bindChanging(_ row: JobRow, to statement: any Bindings, behind start: Int32 = 0) {
        let binder = Binder(statement: statement, start: start)
        binder.bind(row.id, .id)
        binder.bind(Int64(row.state.code), .state)
        binder.bind(Int64(row.waiting.rawValue), .waiting)
        binder.bind(row.isRemoving ? 1 : 0, .removing)
        binder.bind(row.hasDependents ? 1 : 0, .awaited)
        binder.bind(Int64(row.crashes), .crashes)
        binder.bind(row.version, .version)
        binder.bind(Int64(row.link), .link)
        binder.bind(row.host, .host)
        binder.bind(row.run?.life, .runLife)
        binder.bind(row.due, .due)
        binder.bind(row.notBefore?.milliseconds, .notBefore)
        binder.bind(row.deadline, .deadline)
        binder.bind(row.finishedAt?.milliseconds, .finishedAt)
        binder.bind(life(row), .life)
        binder.bind(row.carried?.encoded, .carried)
    }

    package static func submitted(_ row: JobRow) -> [UInt8] {
        var writer = ByteWriter(reserving: 64)
        writer.byte(form)
        writer.number(row.specSize)
        writer.number(row.storedSpecSize)
        writer.number(row.parent?.depth ?? 0)
        writer.optional(row.groups) { $0.text($1.text) }
        writer.list(row.tags) { $0.text($1) }
        writer.plan(row.plan)
        return writer.bytes
    }

    private static func life(_ row: JobRow) -> [UInt8] {
        var writer = ByteWriter(reserving: 64)
        writer.byte(form)
        writer.number(row.run?.number ?? 0)
        writer.optional(row.stop) { $0.text($1.rawValue) }
        writer.optional(row.awaits) { $0.number($1) }
        writer.byte(row.notifies ? 1 : 0)
        writer.optional(row.rate) { $0.number($1) }
        writer.optional(row.url) { $0.text($1) }
        writer.optional(row.startedAt) { $0.time($1) }
        writer.optional(row.linkStartedAt) { $0.time($1) }
        writer.number(row.attempt)
        writer.number(row.restarts)
        writer.number(row.checkpointSize)
        writer.number(row.children)
        writer.list(row.outcomes) { writer, outcome in
            writer.number(outcome.link)
            writer.time(outcome.startedAt)
            writer.time(outcome.finishedAt)
            writer.number(outcome.attempts)
            writer.optional(outcome.error) { $0.error($1) }
            writer.optional(outcome.url) { $0.text($1) }
        }
        writer.optional(row.failedLink) { writer, failed in
            writer.number(failed.link)
            writer.optional(failed.incoming) { $0.carried($1) }
        }
        writer.optional(row.lastFailure) { $0.error($1) }
        writer.list(row.blobs) { writer, blob in
            writer.number(blob.link)
            writer.blob(blob.blob)
            writer.number(blob.attempt)
        }
        // Most jobs have none.
        if let node = row.node { writer.text(node) }
        return writer.bytes
    }

    // MARK: Reading

    /// The id in the present row of a statement that selects ``selected``.
    package static func id(_ row: some StoredColumns) -> JobID { row.integer(Column.id.rawValue) }

    /// The bytes of its blobs.
    package static func size(_ row: some StoredColumns) -> Int {
        [Column.submitted, .life, .carried].reduce(0) { $0 + row.size($1.rawValue) }
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
        let runLife = row.optionalInteger(Column.runLife.rawValue)
        try row.decoded(Column.life.rawValue) { reader throws(DamagedRow) in
            try read(&reader, runLife: runLife, into: &job)
        }
        job.carried = try row.carried(Column.carried.rawValue)
        return job
    }

    /// The job with what never changes, and its state.
    private static func submitted(_ row: some StoredColumns) throws(DamagedRow) -> JobRow {
        guard let queue = row.text(Column.queue.rawValue) else { throw DamagedRow() }
        let (owner, state) = (try row.owner(Column.owner.rawValue), try row.state(Column.state.rawValue))
        let (link, index) = (try row.count(Column.parentLink.rawValue), try row.count(Column.parentIndex.rawValue))
        return try row.decoded(Column.submitted.rawValue) { reader throws(DamagedRow) in
            guard try reader.byte() == form else { throw DamagedRow() }
            guard let createdAt = row.time(Column.createdAt.rawValue) else { throw DamagedRow() }
            let (specSize, storedSpecSize, depth) = (try reader.count(), try reader.count(), try reader.count())
            let groups = try reader.hasValue() ? CallerGroups(stored: reader.text()) : nil
            let tags = try reader.texts()
            let terms = JobTerms(
                plan: try reader.plan(), queue: queue, priority: Int(row.integer(Column.priority.rawValue)),
                key: row.text(Column.key.rawValue), keepsKey: row.integer(Column.keepsKey.rawValue) != 0, tags: tags,
                label: row.text(Column.label.rawValue))
            let parent = row.optionalInteger(Column.parent.rawValue).map {
                JobRow.Parent(
                    job: $0, link: link, list: row.integer(Column.list.rawValue), index: index, depth: depth)
            }
            return JobRow(
                id: id(row), owner: owner, groups: groups, parent: parent, terms: terms, specSize: specSize,
                storedSpecSize: storedSpecSize, createdAt: createdAt, state: state)
        }
    }

    private static func read(
        _ reader: inout ByteReader, runLife: Int64?, into job: inout JobRow
    ) throws(DamagedRow) {
        guard try reader.byte() == form else { throw DamagedRow() }
        let number = try reader.number()
        job.run = runLife.map { RunID(life: $0, number: number) }
        if try reader.hasValue() {
            guard let stop = JobRow.Stop(rawValue: try reader.text()) else { throw DamagedRow() }
            job.stop = stop
        }
        job.awaits = try reader.hasValue() ? reader.number() : nil
        job.notifies = try reader.byte() != 0
        job.rate = try reader.hasValue() ? reader.count() : nil
        job.url = try reader.hasValue() ? reader.text() : nil
        job.startedAt = try reader.hasValue() ? reader.time() : nil
        job.linkStartedAt = try reader.hasValue() ? reader.time() : nil
        job.attempt = try reader.count()
        job.restarts = try reader.count()
        job.checkpointSize = try reader.count()
        job.children = try reader.count()
        job.outcomes = try reader.list { reader throws(DamagedRow) in
            let link = try reader.count()
            let (startedAt, finishedAt, attempts) = (try reader.time(), try reader.time(), try reader.count())
            let error = try reader.hasValue() ? reader.error() : nil
            let url = try reader.hasValue() ? reader.text() : nil
            return LinkOutcome(
                link: link, error: error, startedAt: startedAt, finishedAt: finishedAt, attempts: attempts, url: url)
        }
        if try reader.hasValue() {
            job.failedLink = JobRow.FailedLink(
                link: try reader.count(), incoming: try reader.hasValue() ? reader.carried() : nil)
        }
        job.lastFailure = try reader.hasValue() ? reader.error() : nil
        job.blobs = try reader.list { reader throws(DamagedRow) in
            LinkBlob(link: try reader.count(), blob: try reader.blob(), attempt: try reader.count())
        }
        if !reader.isAtEnd { job.node = try reader.text() }
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
