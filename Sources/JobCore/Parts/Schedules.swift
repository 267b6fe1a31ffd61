package import JobModel

/// What is known of schedules beside their rows: the rules of their zones, and what is being prepared.
struct Schedules {
    /// Schedules that are to be looked at again, as a clock was set or zones changed.
    enum Rescan: Hashable {
        case none
        /// Those behind this key; nil for all.
        case after(ScheduleKey?)
    }

    /// The rules of zones, by name. They were learned outside, so a reset leaves them alone.
    private(set) var zones: [String: ZoneRules] = [:]
    private(set) var rescan = Rescan.none
    /// From when on times pass while this daemon runs.
    private(set) var startedAt: Timestamp
    /// Schedules whose next job is being made of their specs.
    private var preparing: Set<ScheduleKey> = []
    /// How far the wall clock was ahead of the steady one, in milliseconds, when it was last looked at.
    private var ahead: Int64?

    init(startedAt: Timestamp) { self.startedAt = startedAt }

    /// The rules that a schedule goes by; nil where those of its zone are not known.
    func zone(of schedule: Schedule) -> ZoneRules? {
        if let name = schedule.timing.zone { zones[name] } else { .utc }
    }

    mutating func use(_ rules: ZoneRules, of zone: String) { zones[zone] = rules }

    /// The rules of zones were read again.
    mutating func use(_ rules: [String: ZoneRules]) { zones.merge(rules) { _, new in new } }

    /// Every schedule is to be looked at again.
    mutating func lookAgain() { rescan = .after(nil) }

    var preparingCount: Int { preparing.count }
    func isPreparing(_ key: ScheduleKey) -> Bool { preparing.contains(key) }

    /// Takes over what a round changed.
    mutating func apply(_ changes: [ScheduleKey: Bool], _ rescan: Rescan?) {
        for (key, isPreparing) in changes {
            if isPreparing { preparing.insert(key) } else { preparing.remove(key) }
        }
        if let rescan { self.rescan = rescan }
    }

    /// Whether the wall clock was set back since the last look, by how it stands to the clock that is never set.
    mutating func wasSetBack(at now: CoreMoment) -> Bool {
        let ahead = now.wall.milliseconds.saturatingSubtracting(now.steady)
        defer { self.ahead = ahead }
        // What passes from now on passes while this daemon runs.
        startedAt = min(startedAt, now.wall)
        return self.ahead.map { ahead < $0.saturatingSubtracting(500) } ?? false
    }
}

extension Schedule {
    /// Up to when its times are dealt with.
    package var floor: Timestamp { [doneUntil, lastTime, waiting.last].compactMap(\.self).max() ?? doneUntil }
}
