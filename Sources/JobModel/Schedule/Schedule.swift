/// A schedule's owner and its name, unique per owner.
package struct ScheduleKey: Sendable, Hashable, Comparable {
    package let owner: UInt32
    package let name: String

    package init(owner: UInt32, name: String) {
        self.owner = owner
        self.name = name
    }

    package static func < (left: ScheduleKey, right: ScheduleKey) -> Bool {
        // Names are ASCII, so this is byte order.
        left.owner == right.owner ? left.name < right.name : left.owner < right.owner
    }

    /// Returns why `name` cannot name a schedule, or nil if it can.
    package static func flaw(in name: String) -> String? {
        (1...64).contains(name.utf8.count) && name.unicodeScalars.allSatisfy(NodeDescription.isAllowed)
            ? nil : "A schedule's name is 1 to 64 letters, digits, dots, underscores and hyphens."
    }

    package static let jobKeyPrefix = "schedule:"

    /// Returns the key of the job for a time, or for a boot of the machine, so that there is only one.
    package func jobKey(at time: Timestamp, boot: String? = nil) -> String {
        "\(Self.jobKeyPrefix)\(name):\(boot ?? time.description)"
    }
}

/// The times at which a schedule submits its job.
package enum ScheduleTiming: Sendable, Hashable {
    /// The times of a calendar, as written, in a named zone.
    case calendar(String, CalendarExpression, zone: String)
    /// An interval in milliseconds, counted from when it was set.
    case every(Int64)
    /// Each start of the machine; the boot with this id is handled or passed over.
    case reboot(String)

    /// A calendar that stands for each start of the machine.
    package static let rebootName = "@reboot"

    /// The maximum interval in milliseconds: ten years.
    package static let longest: Int64 = 315_360_000_000

    package var zone: String? {
        if case .calendar(_, _, let zone) = self { zone } else { nil }
    }

    /// The id of the last boot that is handled; nil unless it is due at boots.
    package var boot: String? {
        if case .reboot(let boot) = self { boot } else { nil }
    }

    /// Returns the first time after `time` of a schedule set at `start`; `zone` is its calendar's zone. The next start of the
    /// machine is unknown.
    package func next(after time: Timestamp, since start: Timestamp, in zone: ZoneRules) -> Timestamp? {
        switch self {
        case .calendar(_, let expression, _): return expression.next(after: time, in: zone)
        case .every(let period):
            // `time` precedes the start if the clock was set back.
            let passed = (time.milliseconds - start.milliseconds).flooredQuotient(by: max(1, period))
            let next = (passed + 1).multipliedReportingOverflow(by: max(1, period))
            return next.overflow ? nil : Timestamp(milliseconds: start.milliseconds.saturatingAdding(next.partialValue))
        case .reboot: return nil
        }
    }

    private static let longestPatience = 60.0

    /// Returns the seconds after which a time counts as missed: half of those to its successor, at most a minute.
    package func patience(for time: Timestamp, since start: Timestamp, in zone: ZoneRules) -> Double {
        let gap = next(after: time, since: start, in: zone)?.seconds(since: time) ?? .infinity
        return min(Self.longestPatience, gap / 2)
    }

    /// Returns at most the last `limit` times after `start` and up to `end`, in order.
    package func last(
        _ limit: Int, after start: Timestamp, upTo end: Timestamp, since set: Timestamp, in zone: ZoneRules
    ) -> [Timestamp] {
        var found: [Timestamp] = []
        var before = Timestamp(milliseconds: end.milliseconds + 1)
        while found.count < limit, let time = last(after: start, before: before, since: set, in: zone) {
            found.append(time)
            before = time
        }
        return found.reversed()
    }

    /// Returns the last time after `start` and before `end`.
    ///
    /// Bisection finds it, so the cost does not grow with the number of times.
    private func last(
        after start: Timestamp, before end: Timestamp, since set: Timestamp, in zone: ZoneRules
    ) -> Timestamp? {
        func following(_ milliseconds: Int64) -> Int64? {
            next(after: Timestamp(milliseconds: milliseconds), since: set, in: zone)
                .flatMap { $0 < end ? $0.milliseconds : nil }
        }
        guard var last = following(start.milliseconds) else { return nil }
        var high = end.milliseconds - 1
        while last < high {
            let middle = last + (high - last) / 2
            if let later = following(middle) { last = later } else { high = middle }
        }
        return Timestamp(milliseconds: last)
    }
}

/// The handling of a schedule's times that passed while no daemon ran.
package enum ScheduleCatchUp: String, Sendable, CaseIterable {
    /// Submits one job, for the last of them.
    case last
    case none
    /// Submits a job for each, one after another.
    case all
}

/// The handling of a schedule's time while the preceding job is unfinished.
package enum ScheduleOverlap: String, Sendable, CaseIterable {
    case skip
    /// Submits its job once that one is finished.
    case queue
}

/// A stored schedule without its spec.
package struct Schedule: Sendable, Hashable {
    package let key: ScheduleKey
    /// The groups of the process that set it, which its jobs get; nil as in ``JobRow/groups``.
    package var groups: CallerGroups?
    package var timing: ScheduleTiming
    package var catchUp: ScheduleCatchUp
    package var overlap: ScheduleOverlap
    package var isSuspended: Bool
    package var setAt: Timestamp
    /// The time up to which its times have been handled.
    package var doneUntil: Timestamp
    /// The last of its times for which a job was submitted; nil before the first.
    package var lastTime: Timestamp?
    package var lastJob: JobID?
    /// Jobs submitted for its times, and times skipped.
    package var submitted = 0
    package var skipped = 0
    /// Times whose jobs each wait for the preceding one to finish; earliest first.
    package var waiting: [Timestamp] = []
    /// The size of its spec, in bytes.
    package var specSize: Int
    /// The wall-clock time of the next check; nil if it has no next time, is suspended, or waits for a job's end.
    /// The check comes at the next time, or at once if a time waits for the preceding job.
    package var next: Timestamp?
    /// Grows by one with each stored change.
    package var version: Int64 = 1

    package init(
        key: ScheduleKey, timing: ScheduleTiming, catchUp: ScheduleCatchUp = .last, overlap: ScheduleOverlap = .skip,
        isSuspended: Bool = false, setAt: Timestamp, specSize: Int
    ) {
        self.key = key
        self.timing = timing
        self.catchUp = catchUp
        self.overlap = overlap
        self.isSuspended = isSuspended
        self.setAt = setAt
        doneUntil = setAt
        self.specSize = specSize
    }

    /// The maximum number of waiting times.
    package static let mostWaiting = 100

    /// The size on disk, in bytes.
    package var storedSize: Int64 {
        var size = JobRow.fixedSize + Int64(specSize) + (groups?.storedSize ?? 0)
        if case .calendar(let text, _, let zone) = timing { size += Int64(text.utf8.count + zone.utf8.count) }
        if let boot = timing.boot { size += Int64(boot.utf8.count) }
        return size
    }
}
