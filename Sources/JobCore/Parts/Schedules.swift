package import JobModel

/// State of schedules beyond their rows: zone rules, and the scan of all schedules.
struct Schedules {
    /// Schedules to check again after a clock was set or zones changed.
    enum Rescan: Hashable {
        case none
        /// Schedules after this key; nil for all.
        case after(ScheduleKey?)
    }

    /// The rules of zones by name; not in rows, so a reset keeps them.
    private(set) var zones: [String: ZoneRules] = [:]
    /// Zones of schedules that other nodes have set, whose rules were asked for.
    private var wanted: Set<String> = []
    var rescan = Rescan.none
    /// The time from which schedule times pass while this daemon runs.
    private(set) var startedAt: Timestamp
    /// How far the wall clock was ahead of the steady clock at the last input, in milliseconds.
    private var ahead: Int64?

    /// The id of the machine's present boot.
    let boot: String

    init(startedAt: Timestamp, boot: String) { (self.startedAt, self.boot) = (startedAt, boot) }

    /// Returns the rules of a schedule's zone, if known.
    func zone(of schedule: Schedule) -> ZoneRules? {
        if let name = schedule.timing.zone { zones[name] } else { .utc }
    }

    mutating func use(_ rules: [String: ZoneRules]) { (zones, wanted) = (zones.merging(rules) { $1 }, []) }

    /// Returns the zone of a schedule if its rules must be asked for.
    mutating func unknownZone(of schedule: Schedule) -> String? {
        schedule.timing.zone.flatMap { zones[$0] == nil && wanted.insert($0).inserted ? $0 : nil }
    }

    /// Requests a check of every schedule, as a round with what it asked for is undone.
    mutating func lookAgain() {
        rescan = .after(nil)
        wanted = []
    }

    /// Returns whether the wall clock was set back since the last input, compared with the steady clock.
    mutating func wasSetBack(at now: CoreMoment) -> Bool {
        let ahead = now.wall.milliseconds.saturatingSubtracting(now.steady)
        defer { self.ahead = ahead }
        // Times from now on pass while this daemon runs.
        startedAt = min(startedAt, now.wall)
        return self.ahead.map { ahead < $0.saturatingSubtracting(500) } ?? false
    }
}

extension Schedule {
    /// Counts the present boot as handled, if the schedule is due at boots.
    mutating func skip(boot: String) { if timing.boot != nil { timing = .reboot(boot) } }

    /// The time up to which its times are handled.
    package var floor: Timestamp { [doneUntil, lastTime, waiting.last].compactMap(\.self).max() ?? doneUntil }
}
