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
    /// The queues that its jobs and their children go to, where no expression says that.
    package let queues: [NamedQueue]

    package init(
        key: ScheduleKey, timing: ScheduleTiming, zone: ZoneRules, catchUp: ScheduleCatchUp, overlap: ScheduleOverlap,
        isSuspended: Bool, spec: JSON, queues: [NamedQueue]
    ) {
        self.key = key
        self.timing = timing
        self.zone = zone
        self.catchUp = catchUp
        self.overlap = overlap
        self.isSuspended = isSuspended
        self.spec = spec
        self.queues = queues
    }
}

/// The spec of a job that a schedule submits for a time, as it is stored.
package struct ScheduledSpec: Sendable {
    package let spec: JSON
    /// In bytes.
    package let size: Int
    package let schedule: ScheduleKey
    package let time: Timestamp
    /// False where the job is submitted by hand, and so has no key of the schedule's.
    package let hasKey: Bool

    /// The job, its expressions filled in and its limits and policy checked.
    package func checked(by admission: Admission) -> Result<NewJob, CoreError> {
        Result { () throws(CoreError) in
            NewJob(try admission.scheduled(spec, by: schedule, at: time, hasKey: hasKey))
        }
    }
}

/// A schedule as it is shown.
package struct ScheduleView: Sendable {
    package let stored: StoredSchedule
    /// Its next time; nil where it has none, or is suspended.
    package let next: Timestamp?
    package var schedule: Schedule { stored.schedule }
}
