import JobModel
import JobProtocol
import JobCore
import JobEngine

/// Reads jobs and schedules for a caller, who sees their own unless an administrator. Calls block.
final class Lookup {
    let engine: Engine
    let caller: Caller
    private let inlineResult: Int
    /// The rules of zones, which many schedules may share.
    private var zones: [String: ZoneRules?] = [:]
    /// The queues, and the running sources of each owner in each of them, when they were first asked for.
    private lazy var queues = (all: engine.status.queues, slots: engine.board.slots)

    init(_ engine: Engine, for caller: Caller) {
        self.engine = engine
        self.caller = caller
        inlineResult = engine.limits.inlineResult
    }

    func view(_ job: StoredJob) -> JobView {
        let isShown = job.row.state == .running && engine.board.isAbout(job.row.run, of: job.row.id)
        return JobView(
            job.row, document: job.document, template: job.template,
            progress: isShown ? engine.board.progress(of: job.row.id) : nil,
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
        guard let job = try engine.reader.job(id), caller.sees(job.row) else { throw CoreError.noJob(id) }
        return job
    }

    /// A page of jobs, and the id after which the next page begins; nil at the end.
    func page(_ filter: JobFilter, within room: Int) throws -> (page: JobPage, next: JobID?) {
        if let parent = filter.parent { _ = try standings(of: [parent]) }
        var page = JobPage(within: room)
        let (jobs, hasMore) = try self.jobs(filter)
        for job in jobs { guard page.add(view(job)) else { break } }
        guard page.count > 0 || jobs.isEmpty else { throw Batch.full }
        // Jobs that do not fit come with the next page.
        let last = page.count > 0 ? jobs[page.count - 1].row.id : nil
        return (page, hasMore || page.count < jobs.count ? last : nil)
    }

    /// The jobs that a filter selects, and whether there are more behind them.
    private func jobs(_ filter: JobFilter) throws -> (jobs: [StoredJob], hasMore: Bool) {
        var filter = filter
        if !caller.isAdmin { filter.owner = caller.uid }
        let limit = filter.limit
        filter.limit += 1
        let (jobs, endsEarly) = try engine.reader.page(filter)
        return (Array(jobs.prefix(limit)), endsEarly || jobs.count > limit)
    }

    /// The standings of jobs, which the caller must see.
    private func standings(of ids: [JobID]) throws -> [JobID: JobStanding] {
        let standings = try engine.reader.standings(of: ids)
        for id in ids {
            guard let standing = standings[id], caller.isAdmin || standing.owner == caller.uid else {
                throw CoreError.noJob(id)
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
        var areOver = true
        try forEach(ids) { job in
            // The job before it was removed meanwhile.
            guard job.row.id == ids[page.count] else { throw CoreError.noJob(ids[page.count]) }
            areOver = job.row.state.isTerminal
            page.add(view(job), before: ids.count - page.count - 1)
            return areOver
        }
        guard areOver else { return nil }
        guard page.count == ids.count else { throw CoreError.noJob(ids[page.count]) }
        return Array("{\"jobs\":[".utf8) + page.text + Array("]}".utf8)
    }

    // MARK: - Watches

    /// Jobs in the answer to a watch that does not name them.
    private static let snapshots = 1000

    /// The jobs that the answer to a watch shows, and those that the watch knows from the beginning.
    struct Beginning: Sendable {
        fileprivate(set) var page: JobPage
        fileprivate(set) var versions: [JobID: Int64] = [:]
        fileprivate(set) var unfinished: Set<JobID> = []
        /// Whether the page leaves out a job. Then `unfinished` has all jobs only where the watch names them.
        fileprivate(set) var isTruncated = false
        /// Further jobs that the watch does not name.
        fileprivate var left = Lookup.snapshots
        /// Jobs with children that were not read yet.
        fileprivate var parents: [JobID] = []

        fileprivate mutating func add(_ row: JobRow, _ view: @autoclosure () -> JobView) {
            versions[row.id] = row.version
            if !row.state.isTerminal {
                unfinished.insert(row.id)
                if row.children > 0 { parents.append(row.id) }
            }
            if !isTruncated, !page.add(view()) { isTruncated = true }
        }
    }

    func beginning(of scope: WatchScope, within room: Int) throws -> Beginning {
        var beginning = Beginning(page: JobPage(within: room))
        var filter = JobFilter()
        switch scope.subject {
        case .jobs(let ids):
            let standings = try standings(of: ids)
            for (id, standing) in standings {
                beginning.versions[id] = standing.version
                if !standing.state.isTerminal { beginning.unfinished.insert(id) }
            }
            try forEach(ids) { job in
                beginning.add(job.row, view(job))
                return !beginning.isTruncated
            }
        case .tag(let tag):
            filter.tag = tag
            try addUnfinished(filter, to: &beginning)
        case .all: try addUnfinished(filter, to: &beginning)
        }
        while scope.includesChildren, !beginning.parents.isEmpty, !beginning.isTruncated {
            for parent in exchange(&beginning.parents, with: []) {
                filter = JobFilter()
                filter.parent = parent
                try addUnfinished(filter, to: &beginning)
            }
        }
        return beginning
    }

    private func addUnfinished(_ filter: JobFilter, to beginning: inout Beginning) throws {
        var filter = filter
        filter.states = [.scheduled, .held, .queued, .running]
        filter.order = .oldest
        while true {
            filter.limit = beginning.left
            let (jobs, hasMore) = beginning.left > 0 ? try self.jobs(filter) : ([], true)
            for job in jobs { beginning.add(job.row, view(job)) }
            beginning.left -= jobs.count
            guard hasMore else { return }
            guard let last = jobs.last, beginning.left > 0, !beginning.isTruncated else {
                return beginning.isTruncated = true
            }
            filter.after = last.row.id
        }
    }

    // MARK: - Results

    /// The bytes of the result of a succeeded job: the body of a response, else the JSON of its value.
    func result(of id: JobID) throws -> StoredValue {
        let row = try job(id).row
        guard row.state == .succeeded, case .success(let value) = row.carried else {
            throw CoreError(.wrongState(row.state), "Job \(id) has no result; it is \(row.state.rawValue).")
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
        switch (json["size"]?.int ?? 0) - (json["omitted"]?.int ?? 0) - body.utf8.count {
        case 0: return .inline(Array(body.utf8))
        case 1: return .inline(Array(body.utf8) + [UInt8(ascii: "\n")])
        default: return value
        }
    }

    // MARK: - Output of programs

    /// The file with the output of an attempt of a link's program, by default the latest, and whether it writes no more; without
    /// a file, it wrote nothing or has not begun.
    func output(of id: JobID, link: Int?, attempt: Int?) throws -> (file: BlobReference?, isOver: Bool) {
        // Asked first: the output of a program that has ended since is complete.
        let running = engine.board.program(of: id)
        let row = try job(id).row
        guard let link = link ?? running?.link ?? row.latestProgram, row.plan.isProgram(link) else {
            let place = link.map { "link \($0)" } ?? "it"
            throw SpecError(
                JSONPointer(["link"]),
                "Job \(id) has no output of a program, as \(place) runs none; name a link that does.")
        }
        if let running, running.link == link, attempt ?? running.attempt == running.attempt,
            engine.board.isAbout(row.run, of: id)
        {
            return (running.file, false)
        }
        let kept = row.blobs.last { $0.isOutput && $0.link == link && $0.attempt == attempt ?? $0.attempt }
        let isOver = kept != nil || row.isOver(link, attempt)
        guard kept != nil || attempt == nil || !isOver else {
            throw SpecError(
                JSONPointer(["attempt"]),
                "The output of attempt \(attempt ?? 0) is not kept, or it wrote nothing; leave \"attempt\" out for the latest."
            )
        }
        return (kept?.blob, isOver)
    }

    /// The first of these jobs that the caller's jobs cannot wait for.
    func missing(of jobs: [NamedJob]) throws -> NamedJob? {
        let standings = try engine.reader.standings(of: jobs.map(\.id))
        return jobs.first { standings[$0.id]?.owner != caller.uid }
    }

    // MARK: - Schedules

    func schedule(_ key: ScheduleKey) throws -> ShownSchedule {
        guard caller.isAdmin || caller.uid == key.owner, let stored = try engine.reader.schedule(key) else {
            throw CoreError.noSchedule(key)
        }
        return view(stored)
    }

    /// A page of schedules, and the key after which the next page begins; nil at the end.
    func schedules(
        after key: ScheduleKey?, of owner: UInt32?, limit: Int
    ) throws -> (schedules: [ShownSchedule], next: ScheduleKey?) {
        let owner = caller.isAdmin ? owner : caller.uid
        let rows = try engine.reader.schedules(after: key, owner: owner, limit: limit + 1)
        let shown = rows.prefix(limit).map(view)
        return (shown, rows.count > limit ? shown.last?.stored.row.schedule.key : nil)
    }

    /// A schedule, and its next time; nil if it has none or is suspended.
    typealias ShownSchedule = (stored: StoredScheduleRow, next: Timestamp?)

    private func view(_ stored: StoredScheduleRow) -> ShownSchedule {
        let schedule = stored.row.schedule
        var next: Timestamp?
        if !schedule.isSuspended {
            var zone: ZoneRules? = .utc
            if let name = schedule.timing.zone {
                if zones[name] == nil { zones[name] = .some(try? engine.settings.zones.rules(of: name)) }
                zone = zones[name] ?? nil
            }
            // Times that are done do not come again after the clock was set back.
            let last = max(engine.wallTime, schedule.floor)
            next = zone.flatMap { schedule.timing.next(after: last, since: schedule.setAt, in: $0) }
        }
        return (stored, next)
    }
}

extension JobRow {
    /// The latest link with a program: one that it ran, or will run.
    fileprivate var latestProgram: Int? {
        if let link = (0...link).last(where: plan.isProgram) { return link }
        return (0...plan.links.count).first(where: plan.isProgram)
    }

    /// Whether an attempt of a link, by default the next, will write nothing more.
    fileprivate func isOver(_ link: Int, _ attempt: Int?) -> Bool {
        if state.isTerminal || self.link > link { return true }
        guard self.link == link, let attempt else { return false }
        return attempt < self.attempt || attempt == self.attempt && state == .scheduled
    }
}

extension Connection {
    /// Reads for the caller, outside event loops, unless no client is left for an answer.
    func look<Value: Sendable>(
        _ body: @escaping @Sendable (Lookup) throws -> Value
    ) async throws -> Value {
        if isGone { throw Self.shuttingDown }
        return try await engine.blocking(for: caller.uid) { [engine, caller] in try body(Lookup(engine, for: caller)) }
    }
}
