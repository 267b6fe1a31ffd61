package import JobModel

/// A caller's request. A store reader serves requests that only read jobs.
package enum CoreRequest: Sendable {
    /// New jobs. Answered with `submitted` in their order.
    case submit([NewJob])
    /// Answered with `changed`: of a cancellation once the job has ended or, if that takes time, has been told to stop; of
    /// a removal with `done`, once the job and its descendants are gone.
    case change(JobID, JobAction)
    /// Changes each of these jobs that exists and allows the action, or only counts them. Answered with `counted`.
    case changeAll([JobID], JobAction, onlyCounts: Bool)
    /// Answered with `done` once each job has ended or is gone, perhaps at once; a job may have restarted since. Fails if a
    /// job does not exist or belongs to another user.
    case wait([JobID])
    /// Answered with `done`; every later change is reported. The caller reads the jobs after the answer.
    case watch(WatchScope, SubscriptionID)
    /// Answered with `queue`.
    case setQueue(String, QueueChange)
    /// Answered with `done`.
    case setSchedule(NewSchedule)
    /// Answered with `done`.
    case removeSchedule(ScheduleKey)
    /// Submits its job now. Answered with `submitted`.
    case runSchedule(ScheduleKey)
    /// Answered with `done`.
    case suspendSchedule(ScheduleKey, isSuspended: Bool)
    /// Passes through a round. Answered with `done`.
    case probe

    package var isRemoval: Bool {
        switch self {
        case .change(_, let action), .changeAll(_, let action, _): action == .remove
        default: false
        }
    }
}

/// The answer to a request.
package enum CoreAnswer: Sendable {
    case failed(ProtocolError)
    case done
    /// In submission order.
    case submitted([Result<SubmittedJob, ProtocolError>])
    /// The job has changed and can be read.
    case changed(JobID)
    case counted(done: Int, skipped: Int)
    case queue(QueueStatus)
}

/// The result of one submission.
package struct SubmittedJob: Sendable, Hashable {
    package let job: JobID
    package let state: JobState
    /// False if the key matched an earlier job.
    package let isCreated: Bool
}

package struct QueueStatus: Sendable, Hashable {
    package let settings: QueueSettings
    /// The most slots per owner.
    package let perUser: Int
    /// Whether it accepts new jobs, rather than only running the ones that it has.
    package let takesJobs: Bool
}

/// A schedule to set, its spec checked by ``Admission``.
package struct NewSchedule: Sendable {
    /// Its times are those of no round yet.
    package let schedule: Schedule
    /// The JSON text of its spec.
    package var spec: [UInt8]
    /// The rules of its calendar's time zone.
    package var zone = ZoneRules.utc
    /// The queues that its jobs and their children name without an expression.
    package var queues: [NamedQueue] = []

    package init(_ schedule: Schedule, spec: [UInt8]) {
        self.schedule = schedule
        self.spec = spec
    }
}

/// Changes to a queue; nil keeps a setting, and one without a value is given back to the configuration.
package struct QueueChange: Sendable, Hashable {
    package var concurrency: Int??
    package var perUser: Int??
    package var isSuspended: Bool??
    package var startRate: StartRate??
    package var byteRate: Int??

    package init() {}

    func applied(to overrides: QueueOverrides) -> QueueOverrides {
        var changed = overrides
        changed.concurrency = concurrency ?? overrides.concurrency
        changed.perUser = perUser ?? overrides.perUser
        changed.isSuspended = isSuspended ?? overrides.isSuspended
        changed.startRate = startRate ?? overrides.startRate
        changed.byteRate = byteRate ?? overrides.byteRate
        return changed
    }
}

/// The user behind a request.
package struct Caller: Sendable, Hashable {
    package let uid: UInt32
    /// Root, the daemon's own user, or a member of the administrators' group: sees and changes every job.
    package let isAdmin: Bool
    /// The groups of the calling process; nil if they are unknown or decide nothing.
    package let groups: CallerGroups?

    package init(uid: UInt32, isAdmin: Bool, groups: CallerGroups? = nil) {
        self.uid = uid
        self.isAdmin = isAdmin
        self.groups = groups
    }

    /// The owner whose jobs are visible; nil for all users.
    package var owner: UInt32? { isAdmin ? nil : uid }

    package func sees(_ job: JobRow) -> Bool { !job.isRemoving && (isAdmin || job.owner == uid) }
}

/// The jobs that a subscription covers, and how often it reports progress.
package struct WatchScope: Sendable, Hashable {
    package enum Subject: Sendable, Hashable {
        /// Jobs already checked to be the caller's.
        case jobs([JobID])
        case tag(String)
        case all
    }

    package var subject: Subject
    /// The fewest seconds between two progress reports of a job, rounded up to two digits to limit the distinct values.
    package let interval: Double
    package var includesChildren: Bool

    package init(_ subject: Subject, interval: Double = 0.25, includesChildren: Bool = false) {
        self.subject = subject
        let milliseconds = Int((max(0.001, min(3600, interval)) * 1000).rounded())
        var unit = 1
        while milliseconds / unit >= 100 { unit *= 10 }
        self.interval = Double((milliseconds + unit - 1) / unit * unit) / 1000
        self.includesChildren = includesChildren
    }

    var milliseconds: Int { Int((interval * 1000).rounded()) }
}
