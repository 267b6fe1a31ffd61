import JobCore
import JobEngine
import JobModel
import JobProtocol

/// The jobs that a call names.
enum JobTarget: Sendable {
    case one(JobID)
    case many([JobID])
    /// The jobs of a selection, by id.
    case selected(JobFilter)

    /// The most ids in one call.
    private static let most = 10_000
    static let members = ["job", "jobs", "select"]

    init(_ params: MemberReader, _ caller: Caller, atMost most: Int = most) throws(SpecError) {
        let given = try params.one(of: Self.members, "Say which jobs")
        if let members = try params.members(of: "select") {
            try members.allow(JobFilter.selectMembers)
            var filter = JobFilter()
            try filter.read(members, caller)
            guard JobFilter.selectMembers.contains(where: { $0 != "owner" && members.value($0) != nil }) else {
                throw params.fault("select", "Say which jobs: give at least one member, or \"all\": true.")
            }
            filter.order = .oldest
            self = .selected(filter)
        } else {
            let ids = try params.jobs(atMost: most) ?? []
            self = given == "job" ? .one(ids[0]) : .many(ids)
        }
    }
}

/// `job.cancel`, `job.retry`, `job.remove`, `job.hold`, `job.release` and `job.set`: of one job, or of many.
extension Connection {
    /// Jobs of one piece of a call for many; each piece is stored before the next.
    private static let piece = 256

    func jobChange(
        _ call: Call, _ further: [String] = [], _ read: (MemberReader) throws -> JobAction
    ) async throws {
        let params = try call.params(JobTarget.members + ["dryRun"] + further)
        let (target, action) = (try JobTarget(params, caller), try read(params))
        let onlyCounts = try params.flag("dryRun") ?? false
        guard case .one(let id) = target, !onlyCounts else {
            return try changeAll(call, target, action, onlyCounts)
        }
        try await ask(.change(id, action))
        if action == .remove { return call.succeed([:]) }
        try await look { try $0.show(id, call, within: call.room) }
    }

    /// Changes many jobs, piece by piece, while later calls go on; ends when the connection does.
    private func changeAll(_ call: Call, _ target: JobTarget, _ action: JobAction, _ onlyCounts: Bool) throws {
        let named = if case .many(let ids) = target { ids.count } else { 0 }
        try goOn(call, jobs: named) { [self] _ in
            var (count, skipped) = (0, 0)
            try await forEach(Self.piece, of: target) { ids in
                let answer = try await ask(.changeAll(ids, action, onlyCounts: onlyCounts))
                guard case .counted(let done, let others) = answer else { throw Self.wrongAnswer }
                count += done
                skipped += others
            }
            return JSON.object(["count": JSON(count), "skipped": JSON(skipped)]).utf8
        }
    }

    /// Calls `body` with the ids of these jobs, `size` at a time, until the wait is over. Jobs of a selection that are submitted
    /// later are not visited.
    private func forEach(_ size: Int, of target: JobTarget, _ body: ([JobID]) async throws -> Void) async throws {
        switch target {
        case .one(let id): try await body([id])
        case .many(let ids):
            for start in stride(from: 0, to: ids.count, by: size) where !Task.isCancelled {
                try await body(Array(ids[start...].prefix(size)))
            }
        case .selected(var filter):
            var newest = JobFilter()
            newest.owner = filter.owner
            newest.limit = 1
            let ids = filter.ids ?? 1...JobID.max
            let last = try await look { [newest] in try $0.engine.reader.ids(newest) }.first ?? 0
            guard ids.lowerBound <= last else { return }
            filter.ids = ids.clamped(to: ids.lowerBound...last)
            filter.limit = size
            while !Task.isCancelled {
                let ids = try await look { [filter] in try $0.engine.reader.ids(filter) }
                if ids.isEmpty { return }
                try await body(ids)
                filter.after = ids.last
            }
        }
    }

    // MARK: - Waiting for many

    /// Waits for the jobs of a selection, piece by piece; without a wait if the timeout is 0.
    func waitForAll(_ call: Call, _ filter: JobFilter, timeout: Double?) throws {
        let isPatient = timeout != 0
        try goOn(call, jobs: Self.piece, timeout: isPatient ? timeout : nil) { [self] id in
            // All are found first, as waiting changes their states.
            var ids: [JobID] = []
            var charges: [BudgetCharge] = []
            try await forEach(1000, of: .selected(filter)) { next in
                charges.append(try BudgetCharge(registering: next.count * MemoryLayout<JobID>.size, in: budget))
                ids += next
            }
            defer { withExtendedLifetime(charges) {} }
            var counts: [JobState: Int] = [:]
            try await forEach(Self.piece, of: .many(ids)) { piece in
                for end in try await ends(of: piece, isPatient, id) { counts[end, default: 0] += 1 }
            }
            let states = JobState.allCases.filter(\.isTerminal)
            return JSON.object(states.reduce(into: [:]) { $0[$1.rawValue] = JSON(counts[$1, default: 0]) }).utf8
        }
    }

    /// The states in which the existing ones of these jobs have ended, once all have; none if the wait is over before.
    private func ends(of ids: [JobID], _ isPatient: Bool, _ id: Int64) async throws -> [JobState] {
        var missing: [JobID] = []
        while !Task.isCancelled {
            let standings = try await look { try $0.engine.reader.standings(of: ids) }
            let open = ids.filter { standings[$0]?.state.isTerminal == false }
            if open.isEmpty { return ids.compactMap { standings[$0]?.state } }
            guard isPatient else { throw Self.outOfTime }
            // Its time may have run out during the read.
            if Task.isCancelled { break }
            do throws(ProtocolError) { try await engine.wait(for: open, as: caller, id: id) } catch {
                // One was removed meanwhile, unless its row is damaged.
                guard error.code == ProtocolError.Code.notFound.rawValue, open != missing else { throw error }
                missing = open
            }
        }
        return []
    }
}

extension JobSettings {
    static let members = [
        "priority", "queue", "notBefore", "delay", "deadline", "rate", "label", "tags", "notify",
    ]

    /// Reads new settings; null takes a value away.
    init(_ params: MemberReader) throws(SpecError) {
        self.init()
        func isNull(_ name: String) -> Bool { params.object[name]?.isNull == true }
        guard Self.members.contains(where: { params.object[$0] != nil }) else {
            throw params.fault("priority", "Say what to set: \(Self.members.joined(separator: ", ")).")
        }
        priority = isNull("priority") ? 0 : try params.integer("priority", in: -1000...1000)
        queue = isNull("queue") ? "default" : try params.string("queue", atMost: 64)
        if isNull("delay") || isNull("notBefore") { start = .now }
        if let seconds = try params.number("delay", in: 0...JobSpec.longest) {
            guard params.value("notBefore") == nil else {
                throw params.fault("notBefore", "Give either \"delay\" or \"notBefore\", not both.")
            }
            start = seconds > 0 ? .after(seconds) : .now
        } else if let time = try params.time("notBefore") {
            start = .at(time)
        }
        deadline = isNull("deadline") ? .some(nil) : try JobSpec.duration(params, "deadline").map { $0 }
        rate = isNull("rate") ? 0 : try params.integer("rate", in: 1...1 << 50)
        label = isNull("label") ? .some(nil) : try JobSpec.label(params).map { $0 }
        tags = isNull("tags") ? [] : try params.strings("tags", atMost: 32, flaw: JobSpec.flaw(inTag:))
        notifies = isNull("notify") ? false : try params.flag("notify")
    }
}

extension JobFilter {
    /// The members of a selection.
    static let selectMembers = [
        "state", "queue", "tag", "source", "label", "key", "since", "before", "ids", "all", "owner",
    ]

    /// Reads a selection. Without `owner`, it is of the caller's jobs.
    mutating func read(_ params: MemberReader, _ caller: Caller) throws(SpecError) {
        let names = try params.strings("state", atMost: JobState.allCases.count) { name in
            let known = JobState.allCases.map(\.rawValue).joined(separator: ", ")
            return JobState(rawValue: name) == nil ? "There is no state \"\(name.echoed)\"; known are \(known)." : nil
        }
        if names?.isEmpty == true {
            throw params.fault("state", "\"state\" must name at least one state; leave it out for all.")
        }
        states = Set((names ?? []).compactMap(JobState.init))
        func text(_ name: String) throws(SpecError) -> String? {
            try params.string(name) { text in
                text.isEmpty ? "\"\(name)\" must not be empty; leave it out to select by others." : nil
            }
        }
        queue = try text("queue")
        tag = try params.string("tag", flaw: JobSpec.flaw(inTag:))
        source = try params.choice("source")
        label = try text("label")
        key = try text("key")
        since = try params.time("since")
        before = try params.time("before")
        if let ends = try params.array("ids", atMost: 2) {
            guard ends.count == 2, let first = ends[0].int, let last = ends[1].int, first > 0, last >= first else {
                throw params.fault("ids", "\"ids\" must be the first and the last id, such as [3, 9].")
            }
            ids = JobID(first)...JobID(last)
        }
        if try params.flag("all") == false {
            throw params.fault("all", "\"all\" can only be true; leave it out to select fewer jobs.")
        }
        owner = caller.uid
        guard let value = params.value("owner") else { return }
        guard caller.isAdmin else {
            throw SpecError(
                params.pointer(to: "owner"), "Only administrators select the jobs of other users; leave \"owner\" out.",
                isForbidden: true)
        }
        owner = value == "all" ? nil : try params.owner()
    }
}
