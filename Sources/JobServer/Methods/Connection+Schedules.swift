import JobCore
import JobEngine
import JobModel
import JobProtocol

/// `schedule.set`, `.get`, `.list`, `.remove`, `.run`, `.suspend` and `.resume`.
extension Connection {
    func scheduleSet(_ call: Call) async throws(ProtocolError) {
        let request = try call.read { (params) throws(SpecError) in try ScheduleParameters(params, caller) }
        guard caller.isAdmin || request.key.owner == caller.uid else {
            throw ProtocolError(.forbidden, "Only administrators set schedules of others; leave \"owner\" out.")
        }
        let (admission, spec, owner) = (engine.admission, request.spec, request.key.owner)
        let checked = await engine.blocking(for: caller.uid) {
            Result { () throws(CoreError) in try admission.schedule(spec, at: JSONPointer(["spec"]), owner: owner) }
        }
        let queues: [NamedQueue]
        do { queues = try checked.get() } catch { throw ProtocolError(error) }
        var zone = ZoneRules.utc
        if let name = request.timing.zone {
            do { zone = try await engine.zone(name, for: caller.uid) } catch {
                throw ProtocolError(SpecError(JSONPointer(["zone"]), error.reason))
            }
        }
        let new = NewSchedule(
            key: request.key, timing: request.timing, zone: zone, catchUp: request.catchUp, overlap: request.overlap,
            isSuspended: request.isSuspended, spec: request.spec.utf8, queues: queues)
        _ = try await ask(.setSchedule(new), \.isDone)
        try await show(new.key, call, wasChanged: true)
    }

    func scheduleGet(_ call: Call) async throws(ProtocolError) {
        try await show(try readSchedule(call), call)
    }

    func scheduleRemove(_ call: Call) async throws(ProtocolError) {
        let key = try readSchedule(call)
        _ = try await ask(.removeSchedule(key), \.isDone)
        call.succeed([:])
    }

    func scheduleRun(_ call: Call) async throws(ProtocolError) {
        let key = try readSchedule(call)
        guard let submitted = try await ask(.runSchedule(key), \.submitted).first else {
            throw ProtocolError(.internal, "The schedule submitted no job; this is a defect of the daemon.")
        }
        switch submitted {
        case .success(let job): call.succeed(["job": JSON(Int(job.job))])
        case .failure(let error): throw ProtocolError(error)
        }
    }

    func scheduleSuspend(_ call: Call, _ isSuspended: Bool) async throws(ProtocolError) {
        let key = try readSchedule(call)
        _ = try await ask(.suspendSchedule(key, isSuspended: isSuspended), \.isDone)
        try await show(key, call, wasChanged: true)
    }

    func scheduleList(_ call: Call) async throws(ProtocolError) {
        let (owner, after, limit) = try call.read { (params) throws(SpecError) in
            try params.allow(["owner", "after", "limit"])
            let after = try params.string("after") { text in
                ScheduleKey(cursor: text) == nil ? "\"after\" must be what \"next\" of the page before said." : nil
            }
            return (
                try params.integer("owner", in: 0...Int(UInt32.max)).map(UInt32.init), after.flatMap(ScheduleKey.init),
                try params.integer("limit", in: 1...1000) ?? 1000
            )
        }
        if let owner, !caller.isAdmin, owner != caller.uid { return call.succeed(["schedules": [], "next": nil]) }
        let (schedules, next) = try await look { (lookup) throws(ProtocolError) in
            try lookup.schedules(after: after, of: owner, limit: limit)
        }
        var text: [UInt8] = []
        var shown: ScheduleKey?
        for view in schedules {
            let element = view.json(isWhole: false).utf8
            guard text.count + element.count + 512 <= call.room else {
                // Those that do not fit come with the next page.
                guard shown != nil else { throw Replies.full }
                break
            }
            if shown != nil { text.append(UInt8(ascii: ",")) }
            text += element
            shown = view.schedule.key
        }
        let last = shown == schedules.last?.schedule.key ? next : shown
        call.succeed(
            "schedules", text, [JSONObject.Member(name: "next", value: last.map { .string($0.cursor) } ?? .null)])
    }

    /// Answers with one schedule, whole. A call that changed it must be answered, so in a batch without room its spec is
    /// told by its size.
    private func show(_ key: ScheduleKey, _ call: Call, wasChanged: Bool = false) async throws(ProtocolError) {
        let schedule = try await look { (lookup) throws(ProtocolError) in try lookup.schedule(key) }
        let whole = schedule.json(isWhole: true).utf8
        let room = wasChanged ? call.room : call.replies.roomOutsideBatch(for: call.request.id)
        call.succeed(text: whole.count <= room ? whole : schedule.json(isWhole: false, longestSpec: 0).utf8)
    }

    private func readSchedule(_ call: Call) throws(ProtocolError) -> ScheduleKey {
        try call.read { (params) throws(SpecError) in
            try params.allow(["schedule", "owner"])
            return try params.schedule(of: caller)
        }
    }
}

extension MemberReader {
    /// The members `schedule`, which is required, and `owner`.
    fileprivate func schedule(of caller: Caller) throws(SpecError) -> ScheduleKey {
        let name = try requiredString("schedule", flaw: ScheduleKey.flaw)
        let owner = try integer("owner", in: 0...Int(UInt32.max)).map(UInt32.init)
        return ScheduleKey(owner: owner ?? caller.uid, name: name)
    }
}

extension ScheduleKey {
    /// What a page of schedules says of where the next one begins.
    fileprivate var cursor: String { "\(owner)/\(name)" }

    fileprivate init?(cursor: String) {
        let parts = cursor.split(separator: "/", maxSplits: 1)
        guard parts.count == 2, let owner = UInt32(parts[0]), ScheduleKey.flaw(in: String(parts[1])) == nil else {
            return nil
        }
        self.init(owner: owner, name: String(parts[1]))
    }
}

/// The params of `schedule.set`.
private struct ScheduleParameters {
    let key: ScheduleKey
    let timing: ScheduleTiming
    let catchUp: ScheduleCatchUp
    let overlap: ScheduleOverlap
    let isSuspended: Bool
    let spec: JSON

    init(_ params: MemberReader, _ caller: Caller) throws(SpecError) {
        try params.allow([
            "schedule", "owner", "spec", "calendar", "every", "zone", "catchUp", "overlap", "suspended",
        ])
        key = try params.schedule(of: caller)
        guard let spec = params.value("spec") else { throw params.missing("spec") }
        self.spec = spec
        catchUp = try params.choice("catchUp") ?? .last
        overlap = try params.choice("overlap") ?? .skip
        isSuspended = try params.flag("suspended") ?? false
        let longest = Double(ScheduleTiming.longest) / 1000
        let every = try params.number("every", in: 1...longest)
        guard let calendar = try params.string("calendar") else {
            guard let every else { throw params.fault("calendar", "Give \"calendar\" or \"every\".") }
            guard params.value("zone") == nil else {
                throw params.fault("zone", "\"every\" goes by elapsed time, so it needs no \"zone\"; leave it out.")
            }
            timing = .every(Int64((every * 1000).rounded()))
            return
        }
        guard every == nil else { throw params.fault("every", "Give either \"calendar\" or \"every\", not both.") }
        let expression: CalendarExpression
        do { expression = try CalendarExpression(calendar) } catch { throw params.fault("calendar", error.reason) }
        timing = .calendar(calendar, expression, zone: try params.string("zone") ?? "UTC")
    }
}

extension ScheduleView {
    /// The schedule object of the wire contract; a spec that is left out is told by its size.
    fileprivate func json(isWhole: Bool, longestSpec: Int = StoredScheduleRow.longestShownSpec) -> JSON {
        var object = JSONObject()
        object.append("schedule", .string(schedule.key.name))
        switch schedule.timing {
        case .calendar(let text, _, let zone):
            object.append("calendar", .string(text))
            object.append("zone", .string(zone))
        case .every(let period): object.append("every", JSON(Double(period) / 1000))
        }
        object.append("catchUp", .string(schedule.catchUp.rawValue))
        object.append("overlap", .string(schedule.overlap.rawValue))
        object.append("suspended", .bool(schedule.isSuspended))
        if let spec = stored.spec.map(JSON.init(stored:)), isWhole || schedule.specSize <= longestSpec {
            object.append("spec", Masking.masked(spec))
        } else {
            object.append("specSize", JSON(schedule.specSize))
        }
        object.append("owner", JSON(Int(schedule.key.owner)))
        object.append("next", next.map { .string($0.description) } ?? .null)
        var last: JSON = .null
        if let time = schedule.lastTime {
            last = [
                "time": .string(time.description), "job": schedule.lastJob.map { JSON(Int($0)) } ?? .null,
                "state": stored.lastState.map { .string($0.rawValue) } ?? .null,
            ]
        }
        object.append("last", last)
        object.append("submitted", JSON(schedule.submitted))
        object.append("skipped", JSON(schedule.skipped))
        return .object(object)
    }
}
