import JobModel
import JobProtocol
import JobCore
import JobEngine

/// Reads jobs and schedules for a caller, who sees their own unless an administrator. Calls block.
final class Lookup {
    let engine: Engine
    let caller: Caller
    let server: ServerState
    private let inlineResult: Int
    /// The rules of zones, which many schedules may share.
    var zones: [String: ZoneRules?] = [:]
    /// The queues, and the running sources of each owner in each of them, when they were first asked for.
    private(set) lazy var queues = (all: engine.status.queues, slots: engine.board.slots)

    init(_ connection: Connection) {
        engine = connection.engine
        caller = connection.caller
        server = connection.server
        inlineResult = engine.limits.inlineResult
    }

    func view(_ job: StoredJob) -> JobView {
        return JobView(
            job.row, document: job.document, template: job.template,
            progress: job.row.state == .running ? engine.board.progress(of: job.row.id, in: job.row.run) : nil,
            waitingFor: job.row.isReady ? reason(of: job.row) : nil, inlineResult: inlineResult)
    }

    /// What keeps a ready job from running.
    private func reason(of row: JobRow) -> String {
        let settings = engine.settings
        if settings.store == .postgresql, let node = row.node, node != settings.node.name { return "node" }
        guard let queue = queues.all.first(where: { $0.settings.name == row.queue }) else { return "slot" }
        if queue.settings.isSuspended { return "suspended" }
        let slots = queues.slots[row.queue] ?? [:]
        guard slots.values.reduce(0, +) < queue.settings.concurrency, slots[row.owner, default: 0] < queue.perUser
        else { return "slot" }
        return queue.settings.startRate != nil ? "rate" : row.host != nil ? "host" : "slot"
    }

    // MARK: - Jobs

    func job(_ id: JobID) throws -> StoredJob {
        guard let job = try engine.reader.job(id), caller.sees(job.row) else { throw ProtocolError.noJob(id) }
        return job
    }

    /// Adds rows to a page as long as they fit, at least one; returns the last one, or nil if nothing comes after it.
    static func last<Row>(of rows: [Row], _ hasMore: Bool, _ add: (Row) -> Bool) throws(ProtocolError) -> Row? {
        let count = rows.firstIndex { !add($0) } ?? rows.count
        guard count > 0 || rows.isEmpty else { throw Batch.full }
        return hasMore || count < rows.count ? rows.prefix(count).last : nil
    }

    /// The jobs that a filter selects, and whether there are more behind them.
    func jobs(_ filter: JobFilter) throws -> (jobs: [StoredJob], hasMore: Bool) {
        var filter = filter
        if !caller.isAdmin { filter.owner = caller.uid }
        let limit = filter.limit
        filter.limit += 1
        let (jobs, endsEarly) = try engine.reader.page(filter)
        return (Array(jobs.prefix(limit)), endsEarly || jobs.count > limit)
    }

    /// The standings of jobs, which the caller must see.
    func standings(of ids: [JobID]) throws -> [JobID: JobStanding] {
        let standings = try engine.reader.standings(of: ids)
        for id in ids {
            guard let standing = standings[id], caller.isAdmin || standing.owner == caller.uid else {
                throw ProtocolError.noJob(id)
            }
        }
        return standings
    }

    /// The number of jobs read together.
    private static let readTogether = 128

    /// Calls `body` with the existing ones of these jobs, in order, until it returns false.
    private func forEach(_ ids: [JobID], _ body: (StoredJob) throws -> Bool) throws {
        var rest = ids[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(Self.readTogether))
            let found = try engine.reader.jobs(part)
            // Fewer are found if some are gone or their texts are long. A job may be named twice.
            var end = 0
            for job in found {
                guard try body(job) else { return }
                end = (part[end...].firstIndex(of: job.row.id) ?? end) + 1
            }
            rest = rest.dropFirst(end > 0 ? end : part.count)
        }
    }

    // MARK: - Waits

    /// The answer to a wait, as JSON: one job, shown whole, or a list in the order asked; nil if one has not ended.
    func finished(_ ids: [JobID], isList: Bool, within room: Int) throws -> [UInt8]? {
        guard try standings(of: ids).values.allSatisfy(\.state.isTerminal) else { return nil }
        guard isList else {
            let job = try job(ids[0])
            return job.row.state.isTerminal ? view(job).text(.whole, within: room) : nil
        }
        var page = JobPage(within: room - 16)
        try forEach(ids) { job in
            // Otherwise, one was removed or retried meanwhile.
            guard job.row.id == ids[page.count], job.row.state.isTerminal else { return false }
            page.add(view(job), before: ids.count - page.count - 1)
            return true
        }
        guard page.count == ids.count else { return nil }
        return Array("{\"jobs\":[".utf8) + page.text + Array("]}".utf8)
    }

    // MARK: - Watches

    /// Jobs in the answer to a watch that does not name them.
    private static let snapshots = 1000

    /// Answers a `job.watch`, and opens the watch.
    func begin(_ watch: Watch, of scope: WatchScope, _ call: Call) throws {
        var (named, filters) = ([JobID](), [JobFilter]())
        switch scope.subject {
        case .jobs(let ids): named = ids
        case .tag(let tag): filters = [.unfinished { $0.tag = tag }]
        case .all: filters = [.unfinished { _ in }]
        }
        // Jobs without room in the answer are known, too, if the watch names them.
        var (page, isTruncated) = (JobPage(within: call.room - 128), false)
        var standings = try standings(of: named)
        func add(_ job: StoredJob) {
            let row = job.row
            standings[row.id] = JobStanding(owner: row.owner, state: row.state, version: row.version)
            if !isTruncated, !page.add(view(job)) { isTruncated = true }
            guard scope.includesChildren, row.children > 0, !row.state.isTerminal else { return }
            filters.append(.unfinished { $0.parent = row.id })
        }
        try forEach(named) { job in
            add(job)
            return !isTruncated
        }
        var (next, left) = (0, Self.snapshots)
        while next < filters.count, !isTruncated {
            filters[next].limit = left
            let (jobs, hasMore) = left > 0 ? try self.jobs(filters[next]) : ([], true)
            for job in jobs { add(job) }
            filters[next].after = jobs.last?.row.id
            left -= jobs.count
            if !hasMore { next += 1 } else if left == 0 || jobs.isEmpty { isTruncated = true }
        }
        let members: JSONObject = ["watch": watch.name.json, "truncated": isTruncated ? true : nil]
        call.succeed(members, "jobs", page.text) { [standings] in watch.open(standings) }
    }

    // MARK: - Results

    /// The bytes of the result of a succeeded job: the body of a response, else the JSON of its value.
    func result(of id: JobID) throws -> StoredValue {
        let row = try job(id).row
        guard row.state == .succeeded, case .success(let value) = row.carried else {
            throw ProtocolError.wrongState(row.state, "Job \(id) has no result; its state is \(row.state.rawValue).")
        }
        guard case .inline(let text) = value else { return value }
        let link = row.outcomes.last { !row.plan.isFinally($0.link) }?.link ?? 0
        guard row.plan.mayHaveBody(link) else { return value }
        if let body = row.resultBody { return .file(body) }
        let json = JSON(stored: text)
        let isResponse = json["notModified"] != nil || json["sha256"] != nil
        guard let body = (isResponse ? json["body"] : json["exit"].flatMap { _ in json["output"] })?.string else {
            return value
        }
        if json["encoding"] == "base64" { return .inline(Base64.decode(body) ?? []) }
        guard !isResponse else { return .inline(Array(body.utf8)) }
        // The text of a program's output lacks its final newline. A string that was JSON is shorter by its quotes.
        let (size, omitted) = (json["size"]?.int ?? 0, json["omitted"]?.int ?? 0)
        switch size.saturatingSubtracting(omitted < size ? omitted : 0).saturatingSubtracting(body.utf8.count) {
        case 0: return .inline(Array(body.utf8))
        case 1: return .inline(Array(body.utf8) + [UInt8(ascii: "\n")])
        default: return value
        }
    }

    // MARK: - Output of programs

    /// The file with the output of an attempt of a link's program, by default the latest, and whether the program writes no
    /// more; without a file, it wrote nothing or has not begun. `run` is the run of a program that is running.
    func output(
        of id: JobID, link: Int?, attempt: Int?
    ) throws -> (file: BlobReference?, isOver: Bool, run: RunID?) {
        let row = try job(id).row
        guard let link = link ?? row.latestProgram, row.plan.isProgram(link) else {
            let place = link.map { "link \($0)" } ?? "it"
            throw SpecError(
                JSONPointer(["link"]),
                "Job \(id) has no output of a program, as \(place) runs none; name a link that does.")
        }
        let present = max(1, row.attempt)
        if let run = row.run, row.presentSource == .program, row.link == link, attempt ?? present == present {
            return (engine.runs(run) ? run.output() : run.outputSoFar(), false, run)
        }
        let kept = row.blobs.last { $0.isOutput && $0.link == link && $0.attempt == attempt ?? $0.attempt }
        let isOver = kept != nil || row.isOver(link, attempt)
        guard kept != nil || attempt == nil || !isOver else {
            throw SpecError(
                JSONPointer(["attempt"]),
                "The output of attempt \(attempt ?? 0) is not kept, or it wrote nothing; leave \"attempt\" out for the latest."
            )
        }
        return (kept?.blob, isOver, nil)
    }
}

extension JobFilter {
    fileprivate static func unfinished(_ set: (inout JobFilter) -> Void) -> JobFilter {
        var filter = JobFilter()
        filter.states = [.scheduled, .held, .queued, .running]
        filter.order = .oldest
        set(&filter)
        return filter
    }
}

extension JobRow {
    /// The latest link with a program: one that it ran, or will run.
    fileprivate var latestProgram: Int? {
        (0...link).last(where: plan.isProgram) ?? (0...plan.links.count).first(where: plan.isProgram)
    }

    /// Whether an attempt of a link, by default the next, will write nothing more.
    fileprivate func isOver(_ link: Int, _ attempt: Int?) -> Bool {
        if state.isTerminal || self.link > link { return true }
        guard self.link == link, let attempt else { return false }
        return attempt < self.attempt || attempt == self.attempt && state == .scheduled
    }
}

extension Connection {
    /// The approximate memory of what is read for an answer, in bytes, until the outbox counts the answer.
    private static let bytesPerLook = 2 * Answer.mostBytes

    /// Reads for the caller, outside event loops, unless no client is left for an answer.
    func look<Value: Sendable>(
        _ body: @escaping @Sendable (Lookup) throws -> Value
    ) async throws -> Value {
        if outbox.isClosed { throw ProtocolError.stopping }
        let charge = BudgetCharge(work: Self.bytesPerLook, in: budget)
        defer { withExtendedLifetime(charge) {} }
        return try await engine.blocking(for: peer.uid) { [self] in try body(Lookup(self)) }
    }
}
