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
        let key = new.schedule.key
        guard caller.isAdmin || key.owner == caller.uid else {
            throw ProtocolError(.forbidden, "Only administrators set schedules of others; leave \"owner\" out.")
        }
        new.queues = try await engine.blocking(for: caller.uid) { [admission = engine.admission, spec] in
            try admission.schedule(spec, at: JSONPointer(["spec"]), owner: key.owner)
        }
        if let name = new.schedule.timing.zone {
            do throws(ZoneFiles.Flaw) {
                new.zone = try await engine.blocking(for: caller.uid) {
                    [zones = engine.settings.zones] () throws(ZoneFiles.Flaw) in try zones.rules(of: name)
                }
            } catch {
                throw SpecError(JSONPointer(["zone"]), error.reason)
            }
        }
        _ = try await ask(.setSchedule(new), \.isDone)
        try await show(key, call, wasChanged: true)
    }

    func scheduleGet(_ call: Call) async throws {
        try await show(try readSchedule(call), call)
    }

    func scheduleRemove(_ call: Call) async throws {
        _ = try await ask(.removeSchedule(try readSchedule(call)), \.isDone)
        call.succeed([:])
    }

    func scheduleRun(_ call: Call) async throws {
        guard let submitted = try await ask(.runSchedule(try readSchedule(call)), \.submitted).first else {
            throw ProtocolError(.internal, "The schedule submitted no job; this is a defect of the daemon.")
        }
        call.succeed(["job": try submitted.get().job.json])
    }

    func scheduleSuspend(_ call: Call, _ isSuspended: Bool) async throws {
        let key = try readSchedule(call)
        _ = try await ask(.suspendSchedule(key, isSuspended: isSuspended), \.isDone)
        try await show(key, call, wasChanged: true)
    }

    func scheduleList(_ call: Call) async throws {
        let params = try call.params(["owner", "after", "limit"])
        let owner = try params.owner()
        let after = try params.parsed(
            "after", "\"after\" must be what \"next\" of the page before said.", by: ScheduleKey.init(cursor:))
        let limit = try params.integer("limit", in: 1...1000) ?? 1000
        if let owner, !caller.isAdmin, owner != caller.uid { return call.succeed(["schedules": [], "next": nil]) }
        let (schedules, next) = try await look { try $0.schedules(after: after, of: owner, limit: limit) }
        let longest = StoredScheduleRow.longestShownSpec
        let texts = schedules.lazy.map { $0.stored.json(next: $0.next, longestSpec: longest).utf8 }
        let (text, count) = try call.fit(texts)
        // Schedules that do not fit come with the next page.
        let last = count == schedules.count ? next : schedules[count - 1].stored.row.schedule.key
        call.succeed("schedules", text, ["next": last?.cursor.json ?? .null])
    }

    /// Answers with one schedule. A call that changed it must be answered, so a batch without room gets the size of its spec.
    private func show(_ key: ScheduleKey, _ call: Call, wasChanged: Bool = false) async throws {
        let (stored, next) = try await look { try $0.schedule(key) }
        let whole = stored.json(next: next).utf8
        let room = wasChanged ? call.room : call.roomOutsideBatch
        call.succeed(text: whole.count <= room ? whole : stored.json(next: next, longestSpec: 0).utf8)
    }

    private func readSchedule(_ call: Call) throws -> ScheduleKey {
        try call.params(["schedule", "owner"]).schedule(of: caller)
    }
}

extension MemberReader {
    /// Reads the required member `schedule`, and `owner`.
    fileprivate func schedule(of caller: Caller) throws(SpecError) -> ScheduleKey {
        let name = try requiredString("schedule", flaw: ScheduleKey.flaw)
        return ScheduleKey(owner: try owner() ?? caller.uid, name: name)
    }

    /// The members of `schedule.set`: a schedule without the rules of its zone and its queues, and its spec.
    fileprivate func newSchedule(of caller: Caller) throws(SpecError) -> (NewSchedule, spec: JSON) {
        let key = try schedule(of: caller)
        guard let spec = value("spec") else { throw missing("spec") }
        let text = spec.utf8
        let schedule = Schedule(
            key: key, timing: try timing(), catchUp: try choice("catchUp") ?? .last,
            overlap: try choice("overlap") ?? .skip, isSuspended: try flag("suspended") ?? false,
            setAt: Timestamp(milliseconds: 0), specSize: text.count)
        return (NewSchedule(schedule, spec: text), spec)
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
        let expression: CalendarExpression
        do { expression = try CalendarExpression(calendar) } catch { throw fault("calendar", error.reason) }
        return .calendar(calendar, expression, zone: try string("zone") ?? "UTC")
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

extension StoredScheduleRow {
    /// Returns the schedule object of the wire contract; an omitted spec is replaced by its size.
    fileprivate func json(next: Timestamp?, longestSpec: Int = .max) -> JSON {
        let schedule = row.schedule
        var (calendar, every): (JSON?, JSON?)
        switch schedule.timing {
        case .calendar(let text, _, _): calendar = text.json
        case .every(let period): every = JSON(Double(period) / 1000)
        }
        let spec = schedule.specSize <= longestSpec ? spec.map(JSON.init(stored:)) : nil
        let last = schedule.lastTime.map { time -> JSON in
            [
                "time": time.json, "job": schedule.lastJob?.json ?? .null,
                "state": lastState?.rawValue.json ?? .null,
            ]
        }
        return .object([
            "schedule": schedule.key.name.json, "calendar": calendar, "zone": schedule.timing.zone?.json,
            "every": every, "catchUp": schedule.catchUp.rawValue.json, "overlap": schedule.overlap.rawValue.json,
            "suspended": schedule.isSuspended.json, "spec": spec.map(Masking.masked),
            "specSize": spec == nil ? schedule.specSize.json : nil, "owner": Int(schedule.key.owner).json,
            "next": next?.json ?? .null, "last": last ?? .null, "submitted": schedule.submitted.json,
            "skipped": schedule.skipped.json,
        ])
    }
}
