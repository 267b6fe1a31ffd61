import JobCore
import JobEngine
import JobModel
import JobProtocol

/// `schedule.set`, `.get`, `.list`, `.remove`, `.run`, `.suspend` and `.resume`.
extension Connection {
    func scheduleSet(_ call: Call) async throws {
        let params = try call.params([
            "schedule", "owner", "spec", "calendar", "every", "zone", "catchUp", "overlap", "suspended",
        ])
        var (new, spec) = try params.newSchedule(of: caller)
        let (key, zone) = (new.schedule.key, new.schedule.timing.zone)
        guard caller.isAdmin || key.owner == caller.uid else {
            throw ProtocolError(.forbidden, "Only administrators set schedules of others; leave \"owner\" out.")
        }
        guard new.schedule.timing.boot == nil || engine.settings.store == .sqlite else {
            throw ProtocolError(
                SpecError(
                    JSONPointer(["calendar"]), "The nodes of a database start at different times; use another calendar."
                ))
        }
        (new.spec, new.queues, new.zone) = try await engine.blocking(for: caller.uid) { [engine, spec] in
            let (admission, node) = (engine.admission, engine.settings.node.name)
            let admitted = try admission.schedule(spec, at: JSONPointer(["spec"]), owner: key.owner, node: node)
            return (admitted.spec.utf8, admitted.queues, try zone.map(ZoneFiles.rules(of:)) ?? .utc)
        }
        try await ask(.setSchedule(new))
        try await look { try $0.show(key, call, within: call.room) }
    }

    /// Answers a request about one schedule with its job, if there is one, or the changed schedule, unless it is removed.
    func scheduleChange(_ call: Call, _ request: (ScheduleKey) -> CoreRequest) async throws {
        let key = try call.params(["schedule", "owner"]).schedule(of: caller)
        let request = request(key)
        switch (request, try await ask(request)) {
        case (_, .submitted(let jobs)): call.succeed(["job": try jobs[0].get().job.json])
        case (.removeSchedule, _): call.succeed([:])
        default: try await look { try $0.show(key, call, within: call.room) }
        }
    }
}

extension Lookup {
    func scheduleGet(_ call: Call) throws {
        try show(try call.params(["schedule", "owner"]).schedule(of: caller), call, within: call.roomOutsideBatch)
    }

    /// Answers with one schedule, which shows its spec by its size if there is no room for it.
    fileprivate func show(_ key: ScheduleKey, _ call: Call, within room: Int) throws {
        guard caller.isAdmin || caller.uid == key.owner, let stored = try engine.reader.schedule(key) else {
            throw ProtocolError.noSchedule(key)
        }
        let whole = json(of: stored).utf8
        call.succeed(text: whole.count <= room ? whole : json(of: stored, longestSpec: 0).utf8)
    }

    func scheduleList(_ call: Call) throws {
        let params = try call.params(["owner", "after", "limit"])
        let owner = try params.owner()
        let after = try params.parsed(
            "after", "\"after\" must be what \"next\" of the page before said.", by: ScheduleKey.init(cursor:))
        let limit = try params.integer("limit", in: 1...1000) ?? 1000
        if let owner, !caller.isAdmin, owner != caller.uid { return call.succeed(["schedules": [], "next": nil]) }
        let (room, owned) = (call.room, caller.isAdmin ? owner : caller.uid)
        let rows = try engine.reader.schedules(after: after, owner: owned, limit: limit + 1)
        var text: [UInt8] = []
        let last = try Self.last(of: Array(rows.prefix(limit)), rows.count > limit) { stored in
            let element = json(of: stored, longestSpec: StoredSchedule.longestShownSpec).utf8
            guard text.count + element.count + 512 <= room else { return false }
            text += text.isEmpty ? element : [UInt8(ascii: ",")] + element
            return true
        }
        call.succeed(["next": last?.schedule.key.cursor.json ?? .null], "schedules", text)
    }

    /// Its next time; nil if it has none or is suspended.
    private func next(of schedule: Schedule) -> Timestamp? {
        if schedule.isSuspended { return nil }
        var zone: ZoneRules? = .utc
        if let name = schedule.timing.zone {
            if zones[name] == nil { zones[name] = .some(try? ZoneFiles.rules(of: name)) }
            zone = zones[name] ?? nil
        }
        // Times that are done do not come again after the clock was set back.
        let last = max(engine.clock.wall(), schedule.floor)
        return zone.flatMap { schedule.timing.next(after: last, since: schedule.setAt, in: $0) }
    }

    /// Returns the schedule object of the wire contract; an omitted spec is replaced by its size.
    private func json(of stored: StoredSchedule, longestSpec: Int = .max) -> JSON {
        let schedule = stored.schedule
        var (calendar, every): (JSON?, JSON?)
        switch schedule.timing {
        case .calendar(let text, _, _): calendar = text.json
        case .every(let period): every = JSON(Double(period) / 1000)
        case .reboot: calendar = ScheduleTiming.rebootName.json
        }
        let spec = schedule.specSize <= longestSpec ? stored.spec.map(JSON.init(stored:)) : nil
        let omitted: Int? = spec == nil ? schedule.specSize : nil
        let last = schedule.lastTime.map { time -> JSON in
            [
                "time": time.json, "job": schedule.lastJob?.json ?? .null,
                "state": stored.lastState?.rawValue.json ?? .null,
            ]
        }
        return .object([
            "schedule": schedule.key.name.json, "calendar": calendar, "zone": schedule.timing.zone?.json,
            "every": every, "catchUp": schedule.catchUp.rawValue.json, "overlap": schedule.overlap.rawValue.json,
            "suspended": schedule.isSuspended.json, "spec": spec.map(Masking.masked),
            "specSize": omitted?.json, "owner": Int(schedule.key.owner).json,
            "next": next(of: schedule)?.json ?? .null, "last": last ?? .null, "submitted": schedule.submitted.json,
            "skipped": schedule.skipped.json,
        ])
    }
}

extension MemberReader {
    /// Reads the required member `schedule`, and `owner`.
    fileprivate func schedule(of caller: Caller) throws(SpecError) -> ScheduleKey {
        let name = try requiredString("schedule", flaw: ScheduleKey.flaw)
        return ScheduleKey(owner: try owner() ?? caller.uid, name: name)
    }

    /// The members of `schedule.set`: a schedule without its spec, its queues and the rules of its zone, and the spec as given.
    fileprivate func newSchedule(of caller: Caller) throws(SpecError) -> (NewSchedule, spec: JSON) {
        let key = try schedule(of: caller)
        guard let spec = value("spec") else { throw missing("spec") }
        let schedule = Schedule(
            key: key, timing: try timing(), catchUp: try choice("catchUp") ?? .last,
            overlap: try choice("overlap") ?? .skip, isSuspended: try flag("suspended") ?? false,
            setAt: Timestamp(milliseconds: 0), specSize: 0)
        return (NewSchedule(schedule, spec: []), spec)
    }

    private func timing() throws(SpecError) -> ScheduleTiming {
        let every = try number("every", in: 1...Double(ScheduleTiming.longest) / 1000)
        guard let calendar = try string("calendar") else {
            guard let every else { throw fault("calendar", "Give \"calendar\" or \"every\".") }
            guard value("zone") == nil else {
                throw fault("zone", "\"every\" goes by elapsed time, so it needs no \"zone\"; leave it out.")
            }
            return .every(Int64((every * 1000).rounded()))
        }
        guard every == nil else { throw fault("every", "Give either \"calendar\" or \"every\", not both.") }
        let zone = try string("zone")
        // From the next start on, as the core knows the present one.
        if CalendarExpression.words(calendar) == [ScheduleTiming.rebootName[...]] { return .reboot("") }
        let expression: CalendarExpression
        do { expression = try CalendarExpression(calendar) } catch { throw fault("calendar", error.reason) }
        return .calendar(calendar, expression, zone: zone ?? "UTC")
    }
}

extension ScheduleKey {
    /// The position from which the next page continues.
    fileprivate var cursor: String { "\(owner)/\(name)" }

    fileprivate init?(cursor: String) {
        let parts = cursor.split(separator: "/", maxSplits: 1)
        guard parts.count == 2, let owner = UInt32(parts[0]), ScheduleKey.flaw(in: String(parts[1])) == nil else {
            return nil
        }
        self.init(owner: owner, name: String(parts[1]))
    }
}
