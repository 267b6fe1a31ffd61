import JobCore
import JobEngine
import JobModel
import JobProtocol

/// Schedules as JSON text.
extension Lookup {
    /// A schedule, which shows its spec by its size if there is no room for it.
    func schedule(_ key: ScheduleKey, within room: Int) throws -> [UInt8] {
        guard caller.isAdmin || caller.uid == key.owner, let stored = try engine.reader.schedule(key) else {
            throw ProtocolError.noSchedule(key)
        }
        let whole = json(of: stored).utf8
        return whole.count <= room ? whole : json(of: stored, longestSpec: 0).utf8
    }

    /// The elements of a page of schedules, and the key after which the next page begins; nil at the end.
    func schedules(
        after key: ScheduleKey?, of owner: UInt32?, limit: Int, within room: Int
    ) throws -> (text: [UInt8], next: ScheduleKey?) {
        let owner = caller.isAdmin ? owner : caller.uid
        let rows = try engine.reader.schedules(after: key, owner: owner, limit: limit + 1)
        var text: [UInt8] = []
        let last = try Self.last(of: Array(rows.prefix(limit)), rows.count > limit) { stored in
            let element = json(of: stored, longestSpec: StoredSchedule.longestShownSpec).utf8
            guard text.count + element.count + 512 <= room else { return false }
            text += text.isEmpty ? element : [UInt8(ascii: ",")] + element
            return true
        }
        return (text, last?.schedule.key)
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
        let last = max(engine.wallTime, schedule.floor)
        return zone.flatMap { schedule.timing.next(after: last, since: schedule.setAt, in: $0) }
    }

    /// Returns the schedule object of the wire contract; an omitted spec is replaced by its size.
    private func json(of stored: StoredSchedule, longestSpec: Int = .max) -> JSON {
        let schedule = stored.schedule
        var (calendar, every): (JSON?, JSON?)
        switch schedule.timing {
        case .calendar(let text, _, _): calendar = text.json
        case .every(let period): every = JSON(Double(period) / 1000)
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
