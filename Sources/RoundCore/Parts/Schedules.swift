import JobModel

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
    mutating func use(_ rules: [String: ZoneRules]) {
        zones.merge(rules) { _, new in new }
        lookAgain()
    }

    /// Every schedule is to be looked at again.
    mutating func lookAgain() { rescan = .after(nil) }

    func isPreparing(_ key: ScheduleKey) -> Bool { preparing.contains(key) }
    mutating func prepare(_ key: ScheduleKey) { preparing.insert(key) }
    mutating func prepared(_ key: ScheduleKey) { preparing.remove(key) }

    /// Notices that the wall clock was set back, by how it stands to the clock that is never set.
    mutating func look(at now: CoreMoment) {
        let ahead = now.wall.milliseconds.saturatingSubtracting(now.steady)
        if let before = self.ahead, ahead < before.saturatingSubtracting(500) { lookAgain() }
        self.ahead = ahead
        // What passes from now on passes while this daemon runs.
        startedAt = min(startedAt, now.wall)
    }

    mutating func rescanned(upTo next: Rescan) { rescan = next }
}

extension Schedule {
    /// Up to when its times are dealt with.
    var floor: Timestamp { [doneUntil, lastTime, waiting.last].compactMap(\.self).max() ?? doneUntil }
}
