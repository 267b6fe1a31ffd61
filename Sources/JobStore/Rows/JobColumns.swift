import JobModel

/// How a job is written into a row of the table `jobs`.
enum JobColumns {
    /// What never changes.
    private static let fixed = [
        "id", "owner", "queue", "source", "priority", "key", "digest", "parent", "parent_link", "list", "parent_index",
        "submitted",
    ]
    private static let changing = [
        "state", "waiting", "removing", "crashes", "version", "link", "host", "run_life", "due", "not_before",
        "deadline", "finished_at", "life", "carried",
    ]
    static let all = fixed + changing

    /// Stores what changes in the row ?1.
    static let update =
        "UPDATE jobs SET "
        + changing.enumerated().map { "\($1) = ?\($0 + 2)" }.joined(separator: ", ") + " WHERE id = ?1"

    /// The columns in the order in which ``row(_:)`` reads them.
    static let selected = """
        id, owner, queue, priority, key, parent, parent_link, list, parent_index, submitted, state, waiting, removing, \
        crashes, version, link, host, run_life, due, not_before, deadline, finished_at, life, carried
        """

    /// How many they are.
    static let selectedCount: Int32 = 24

    private enum Column: Int32 {
        case id, owner, queue, priority, key, parent, parentLink, list, parentIndex, submitted, state, waiting, removing
        case crashes, version, link, host, runLife, due, notBefore, deadline, finishedAt, life, carried
    }

    /// The form of the blobs.
    private static let form: UInt8 = 1

    // MARK: Writing

    /// Binds a new row from the parameter behind `start` on.
    static func bind(
        _ row: JobRow, digest: UInt64, to statement: PreparedStatement, from start: Int32, keptIn texts: BoundTexts
    ) {
        statement.bind(row.id, at: start + 1)
        statement.bind(Int64(row.owner), at: start + 2)
        statement.bind(row.queue, at: start + 3, keptIn: texts)
        statement.bind(row.plan.source.source.map { Int64($0.code) } ?? -1, at: start + 4)
        statement.bind(row.priority, at: start + 5)
        if let key = row.key {
            statement.bind(key, at: start + 6, keptIn: texts)
            statement.bind(Int64(bitPattern: digest), at: start + 7)
        }
        if let parent = row.parent {
            statement.bind(parent.job, at: start + 8)
            statement.bind(parent.link, at: start + 9)
            statement.bind(parent.list, at: start + 10)
            statement.bind(parent.index, at: start + 11)
        }
        statement.bind(bytes: submitted(row), at: start + 12, keptIn: texts)
        bindChanging(row, to: statement, from: start + 12, keptIn: texts)
    }

    /// Binds what changes from the parameter behind `start` on.
    static func bindChanging(
        _ row: JobRow, to statement: PreparedStatement, from start: Int32, keptIn texts: BoundTexts
    ) {
        statement.bind(row.state.code, at: start + 1)
        statement.bind(row.waiting.rawValue, at: start + 2)
        statement.bind(row.isRemoving ? 1 : 0, at: start + 3)
        statement.bind(row.crashes, at: start + 4)
        statement.bind(row.version, at: start + 5)
        statement.bind(row.link, at: start + 6)
        statement.bind(row.host, at: start + 7, keptIn: texts)
        statement.bind(row.run?.life, at: start + 8)
        statement.bind(row.due, at: start + 9)
        statement.bind(row.notBefore, at: start + 10)
        statement.bind(row.deadline, at: start + 11)
        statement.bind(row.finishedAt, at: start + 12)
        statement.bind(bytes: life(row), at: start + 13, keptIn: texts)
        if let carried = row.carried {
            var writer = ByteWriter(reserving: Int(carried.size) + 8)
            writer.carried(carried)
            statement.bind(bytes: writer.bytes, at: start + 14, keptIn: texts)
        }
    }

    private static func submitted(_ row: JobRow) -> [UInt8] {
        var writer = ByteWriter(reserving: 64)
        writer.byte(form)
        writer.time(row.createdAt)
        writer.number(row.specSize)
        writer.number(row.storedSpecSize)
        writer.number(row.parent?.depth ?? 0)
        writer.byte(row.groups == nil ? 0 : 1)
        if let groups = row.groups { writer.text(groups.text) }
        writer.number(row.tags.count)
        for tag in row.tags { writer.text(tag) }
        writer.plan(row.plan)
        return writer.bytes
    }

    private static func life(_ row: JobRow) -> [UInt8] {
        var writer = ByteWriter(reserving: 64)
        writer.byte(form)
        writer.number(row.run?.number ?? 0)
        writer.byte(row.stop.map { $0 == .cancelled ? 1 : 2 } ?? 0)
        writer.time(row.startedAt)
        writer.time(row.linkStartedAt)
        writer.number(row.attempt)
        writer.number(row.checkpointSize)
        writer.number(row.children)
        writer.number(row.outcomes.count)
        for outcome in row.outcomes {
            writer.number(outcome.link)
            writer.time(outcome.startedAt)
            writer.time(outcome.finishedAt)
            writer.number(outcome.attempts)
            writer.byte(outcome.error == nil ? 0 : 1)
            if let error = outcome.error { writer.error(error) }
        }
        writer.byte(row.failedLink == nil ? 0 : row.failedLink?.incoming == nil ? 1 : 2)
        if let failed = row.failedLink {
            writer.number(failed.link)
            if let incoming = failed.incoming { writer.carried(incoming) }
        }
        writer.byte(row.lastFailure == nil ? 0 : 1)
        if let error = row.lastFailure { writer.error(error) }
        writer.number(row.blobs.count)
        for blob in row.blobs {
            writer.number(blob.link)
            writer.blob(blob.blob)
        }
        return writer.bytes
    }

    // MARK: Reading

    /// The id in the present row of a statement that selects ``selected``.
    static func id(_ row: PreparedStatement) -> JobID { row.integer(Column.id.rawValue) }

    /// The job in the present row of a statement that selects ``selected``; nil where the row is damaged.
    static func row(_ row: PreparedStatement) -> JobRow? {
        func number(_ column: Column) -> Int64 { row.integer(column.rawValue) }
        func count(_ column: Column) -> Int? {
            let value = number(column)
            return (0...Int64(Int32.max)).contains(value) ? Int(value) : nil
        }
        guard let owner = UInt32(exactly: number(.owner)), let state = JobState(code: number(.state)),
            let waiting = JobRow.Waiting(rawValue: Int(number(.waiting))), let link = count(.link),
            let crashes = count(.crashes), let parentLink = count(.parentLink), let index = count(.parentIndex),
            let queue = row.text(Column.queue.rawValue),
            // It grows by one with each change.
            (0...1 << 56).contains(number(.version))
        else { return nil }
        let parent = row.optionalInteger(Column.parent.rawValue).map {
            JobRow.Parent(job: $0, link: parentLink, list: number(.list), index: index, depth: 0)
        }
        let submitted = row.withBytes(Column.submitted.rawValue) { bytes in
            Self.row(
                bytes, id: number(.id), owner: owner, parent: parent, queue: queue, priority: Int(number(.priority)),
                key: row.text(Column.key.rawValue), state: state)
        }
        guard var job = submitted else { return nil }
        job.waiting = waiting
        job.isRemoving = number(.removing) != 0
        job.crashes = crashes
        job.version = number(.version)
        job.link = link
        job.host = row.text(Column.host.rawValue)
        job.due = row.optionalInteger(Column.due.rawValue)
        job.notBefore = row.time(Column.notBefore.rawValue)
        job.deadline = row.optionalInteger(Column.deadline.rawValue)
        job.finishedAt = row.time(Column.finishedAt.rawValue)
        let runLife = row.optionalInteger(Column.runLife.rawValue)
        guard row.withBytes(Column.life.rawValue, { read($0, runLife: runLife, into: &job) }) else { return nil }
        if !row.isNull(Column.carried.rawValue) {
            let carried = row.withBytes(Column.carried.rawValue) { bytes -> Carried? in
                var reader = ByteReader(bytes)
                guard let carried = reader.carried(), reader.isAtEnd else { return nil }
                return carried
            }
            guard let carried else { return nil }
            job.carried = carried
        }
        return job
    }

    private static func row(
        _ submitted: UnsafeRawBufferPointer, id: JobID, owner: UInt32, parent: JobRow.Parent?, queue: String,
        priority: Int, key: String?, state: JobState
    ) -> JobRow? {
        var reader = ByteReader(submitted)
        guard reader.byte() == form, let createdAt = reader.time(), let specSize = reader.count(),
            let storedSpecSize = reader.count(), let depth = reader.count(), let hasGroups = reader.byte()
        else { return nil }
        var groups: CallerGroups?
        if hasGroups == 1 {
            // Without them more might be allowed than with them.
            guard let known = reader.text().flatMap(CallerGroups.init(stored:)) else { return nil }
            groups = known
        }
        guard let tagCount = reader.count() else { return nil }
        var tags: [String] = []
        for _ in 0..<tagCount {
            guard let tag = reader.text() else { return nil }
            tags.append(tag)
        }
        guard let plan = reader.plan(), reader.isAtEnd else { return nil }
        var parent = parent
        parent?.depth = depth
        return JobRow(
            id: id, owner: owner, groups: groups, parent: parent,
            terms: JobTerms(plan: plan, queue: queue, priority: priority, key: key, tags: tags), specSize: specSize,
            storedSpecSize: storedSpecSize, createdAt: createdAt, state: state)
    }

    private static func read(_ life: UnsafeRawBufferPointer, runLife: Int64?, into job: inout JobRow) -> Bool {
        var reader = ByteReader(life)
        guard reader.byte() == form, let run = reader.number(), let stop = reader.byte(), stop < 3,
            let startedAt = reader.optionalTime(), let linkStartedAt = reader.optionalTime(),
            let attempt = reader.count(), let checkpointSize = reader.count(), let children = reader.count(),
            let outcomeCount = reader.count()
        else { return false }
        job.run = runLife.map { RunID(life: $0, number: run) }
        job.stop = stop == 0 ? nil : stop == 1 ? .cancelled : .deadline
        job.startedAt = startedAt.time
        job.linkStartedAt = linkStartedAt.time
        job.attempt = attempt
        job.checkpointSize = checkpointSize
        job.children = children
        for _ in 0..<outcomeCount {
            guard let link = reader.count(), let started = reader.time(), let finished = reader.time(),
                let attempts = reader.count(), let hasError = reader.byte()
            else { return false }
            let error = hasError == 1 ? reader.error() : nil
            guard hasError == 0 || error != nil else { return false }
            job.outcomes.append(
                LinkOutcome(link: link, error: error, startedAt: started, finishedAt: finished, attempts: attempts))
        }
        return readRest(&reader, into: &job)
    }

    private static func readRest(_ reader: inout ByteReader, into job: inout JobRow) -> Bool {
        guard let failed = reader.byte() else { return false }
        if failed > 0 {
            guard let link = reader.count() else { return false }
            job.failedLink = JobRow.FailedLink(link: link, incoming: nil)
            if failed == 2 {
                guard let incoming = reader.carried() else { return false }
                job.failedLink?.incoming = incoming
            }
        }
        guard let hasFailure = reader.byte() else { return false }
        if hasFailure == 1 {
            guard let error = reader.error() else { return false }
            job.lastFailure = error
        }
        guard let blobCount = reader.count() else { return false }
        for _ in 0..<blobCount {
            guard let link = reader.count(), let blob = reader.blob() else { return false }
            job.blobs.append(LinkBlob(link: link, blob: blob))
        }
        return reader.isAtEnd
    }
}

extension JobRow {
    /// The files that its row names.
    var references: [BlobReference] {
        var found = blobs.map(\.blob)
        if let blob = carried?.blob { found.append(blob) }
        if let blob = failedLink?.incoming?.blob { found.append(blob) }
        return found
    }
}
