/// The name of a schedule among those of its owner.
package struct ScheduleKey: Sendable, Hashable, Comparable {
    package let owner: UInt32
    package let name: String

    package init(owner: UInt32, name: String) {
        self.owner = owner
        self.name = name
    }

    package static func < (left: ScheduleKey, right: ScheduleKey) -> Bool {
        // Names are ASCII, whose order is that of their bytes.
        left.owner == right.owner ? left.name < right.name : left.owner < right.owner
    }

    /// Why `name` cannot be the name of a schedule; nil where it can.
    package static func flaw(in name: String) -> String? {
        let isPlain = name.utf8.allSatisfy { byte in
            (48...57).contains(byte) || (65...90).contains(byte & 0xDF) || [45, 46, 95].contains(byte)
        }
        return isPlain && (1...64).contains(name.utf8.count)
            ? nil : "A schedule's name is 1 to 64 letters, digits, dots, underscores and hyphens."
    }

    /// What the keys of jobs begin with that schedules submit.
    package static let jobKeyPrefix = "schedule:"

    /// The key of the job that this schedule submits for a time, so that there is one only.
    package func jobKey(at time: Timestamp) -> String { "\(Self.jobKeyPrefix)\(name):\(time)" }
}

/// When a schedule submits its job.
package enum ScheduleTiming: Sendable, Hashable {
    /// At the times of a calendar, as it was written, in the zone of this name.
    case calendar(String, CalendarExpression, zone: String)
    /// Every so many milliseconds since it was set.
    case every(Int64)

    /// Milliseconds that lie between two times at most: ten years.
    package static let longest: Int64 = 315_360_000_000

    /// The zone of its calendar; nil where it needs none.
    package var zone: String? {
        if case .calendar(_, _, let zone) = self { zone } else { nil }
    }

    /// The first time after `time` of a schedule that was set at `start`; `zone` are the rules of a calendar's zone.
    package func next(after time: Timestamp, since start: Timestamp, in zone: ZoneRules) -> Timestamp? {
        switch self {
        case .calendar(_, let expression, _): return expression.next(after: time, in: zone)
        case .every(let period):
            // Also before the start, where the clock was set back since.
            let passed = (time.milliseconds - start.milliseconds).flooredQuotient(by: max(1, period))
            let next = (passed + 1).multipliedReportingOverflow(by: max(1, period))
            return next.overflow ? nil : Timestamp(milliseconds: start.milliseconds.saturatingAdding(next.partialValue))
        }
    }

    /// The times after `start` and up to `end`, at most the last `limit` of them, in order.
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

    /// The last time after `start` and before `end`.
    ///
    /// Steps back that double find one, and halving what lies behind it the last: so it takes no longer the more there are.
    private func last(
        after start: Timestamp, before end: Timestamp, since set: Timestamp, in zone: ZoneRules
    ) -> Timestamp? {
        func following(_ milliseconds: Int64) -> Int64? {
            next(after: Timestamp(milliseconds: milliseconds), since: set, in: zone)
                .flatMap { $0 < end ? $0.milliseconds : nil }
        }
        var step: Int64 = 60_000
        if case .every(let period) = self { step = max(1, period) }
        var low = end.milliseconds
        var found: Int64?
        repeat {
            guard low > start.milliseconds else { return nil }
            low = max(start.milliseconds, low.saturatingSubtracting(step))
            step = step.saturatingMultiplied(by: 2)
            found = following(low)
        } while found == nil
        guard var last = found else { return nil }
        var high = end.milliseconds - 1
        while last < high {
            let middle = last + (high - last) / 2
            if let later = following(middle) { last = later } else { high = middle }
        }
        return Timestamp(milliseconds: last)
    }
}

/// What becomes of the times of a schedule that passed while no daemon ran.
package enum ScheduleCatchUp: String, Sendable, CaseIterable {
    /// One job is submitted, for the last of them.
    case last
    case none
    /// One job for each, one after another.
    case all
}

/// What becomes of a time of a schedule while the job before is not finished.
package enum ScheduleOverlap: String, Sendable, CaseIterable {
    case skip
    /// Its job is submitted once that one is.
    case queue
}

/// A schedule as it is stored, without its spec.
package struct Schedule: Sendable, Hashable {
    package let key: ScheduleKey
    /// The groups of the process that set it, which its jobs get; nil means the same as in ``JobRow/groups``.
    package var groups: CallerGroups?
    package var timing: ScheduleTiming
    package var catchUp: ScheduleCatchUp
    package var overlap: ScheduleOverlap
    package var isSuspended: Bool
    /// When it was last set.
    package var setAt: Timestamp
    /// Times up to this one have been dealt with.
    package var doneUntil: Timestamp
    /// The last time that a job was submitted for; nil before the first.
    package var lastTime: Timestamp?
    package var lastJob: JobID?
    /// Jobs submitted for its times, and times for which there was none.
    package var submitted = 0
    package var skipped = 0
    /// Times whose jobs are submitted one after another, each when the one before is finished; earliest first.
    package var waiting: [Timestamp] = []
    /// Bytes of its spec.
    package var specSize: Int

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

    /// Times that can wait.
    package static let mostWaiting = 100

    /// What it takes up on disk, in bytes.
    package var storedSize: Int64 {
        var size = JobRow.fixedSize + Int64(specSize) + (groups?.storedSize ?? 0)
        if case .calendar(let text, _, let zone) = timing { size += Int64(text.utf8.count + zone.utf8.count) }
        return size
    }
}
