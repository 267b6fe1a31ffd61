package import JobModel

/// A schedule to be set, its spec admitted by ``Admission``.
package struct NewSchedule: Sendable {
    package let key: ScheduleKey
    package let timing: ScheduleTiming
    /// The rules of its calendar's zone.
    package let zone: ZoneRules
    package let catchUp: ScheduleCatchUp
    package let overlap: ScheduleOverlap
    package let isSuspended: Bool
    package let spec: JSON
    /// The queue that its jobs go to; nil where an expression says that.
    package let queue: String?

    package init(
        key: ScheduleKey, timing: ScheduleTiming, zone: ZoneRules, catchUp: ScheduleCatchUp, overlap: ScheduleOverlap,
        isSuspended: Bool, spec: JSON, queue: String?
    ) {
        self.key = key
        self.timing = timing
        self.zone = zone
        self.catchUp = catchUp
        self.overlap = overlap
        self.isSuspended = isSuspended
        self.spec = spec
        self.queue = queue
    }
}

/// A schedule as it is shown.
package struct ScheduleView: Sendable {
    package let stored: StoredSchedule
    /// Its next time; nil where it has none, or is suspended.
    package let next: Timestamp?
    package var schedule: Schedule { stored.schedule }
}
