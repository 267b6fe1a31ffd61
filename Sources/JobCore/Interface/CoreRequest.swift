package import JobModel

/// What a caller asks for. What only looks at jobs is asked of a reader of the store.
package enum CoreRequest: Sendable {
    /// New jobs. Answered with `submitted` in their order.
    case submit([NewJob])
    /// Answered with `changed` once the job has ended or, where it takes its time to, once it was told to.
    case cancel(JobID)
    /// Answered with `changed`.
    case retry(JobID, from: RetryPoint)
    /// Answered with `done` once the job and all below it are gone.
    case remove(JobID)
    /// Answered with `done`, and with ``CoreEffect/waitOver(_:)`` once each of these jobs has ended or is gone, which may be at
    /// once. One that is not there, or not the caller's, fails it.
    case wait([JobID])
    /// Answered with `done`; every later change is told. The caller looks at the jobs after the answer.
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
}

/// Where a retry by hand begins.
package enum RetryPoint: String, Sendable, CaseIterable {
    case failed
    case start
}

/// What a request came to.
package enum CoreAnswer: Sendable {
    case failed(CoreError)
    case done
    /// In the order of the submission.
    case submitted([Result<SubmittedJob, CoreError>])
    /// The job was changed, and can be read.
    case changed(JobID)
    case queue(QueueStatus)
}

/// What became of a submission.
package struct SubmittedJob: Sendable, Hashable {
    package let job: JobID
    package let state: JobState
    /// False where the key joined an earlier job.
    package let isCreated: Bool
}

package struct QueueStatus: Sendable, Hashable {
    package let settings: QueueSettings
    /// The most slots that one owner gets.
    package let perUser: Int
    /// Whether jobs can be submitted to it, and not only those run that it has.
    package let takesJobs: Bool
}

/// A schedule to be set, its spec checked by ``Admission``.
package struct NewSchedule: Sendable {
    package let key: ScheduleKey
    package let timing: ScheduleTiming
    /// The rules of its calendar's zone.
    package let zone: ZoneRules
    package let catchUp: ScheduleCatchUp
    package let overlap: ScheduleOverlap
    package let isSuspended: Bool
    /// The JSON text of its spec.
    package let spec: [UInt8]
    /// The queues that its jobs and their children go to, where no expression says that.
    package let queues: [NamedQueue]

    package init(
        key: ScheduleKey, timing: ScheduleTiming, zone: ZoneRules, catchUp: ScheduleCatchUp, overlap: ScheduleOverlap,
        isSuspended: Bool, spec: [UInt8], queues: [NamedQueue]
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

/// What to change of a queue; nil leaves a setting as it is.
package struct QueueChange: Sendable, Hashable {
    package var concurrency: Int?
    package var perUser: Int?
    package var isSuspended: Bool?

    package init(concurrency: Int? = nil, perUser: Int? = nil, isSuspended: Bool? = nil) {
        self.concurrency = concurrency
        self.perUser = perUser
        self.isSuspended = isSuspended
    }
}

/// Who asks.
package struct Caller: Sendable, Hashable {
    package let uid: UInt32
    /// Root, the daemon's own user, or a member of the administrators' group: sees and changes every job.
    package let isAdmin: Bool
    /// The groups of the process that asks; nil where they decide nothing, or are not known.
    package let groups: CallerGroups?

    package init(uid: UInt32, isAdmin: Bool, groups: CallerGroups? = nil) {
        self.uid = uid
        self.isAdmin = isAdmin
        self.groups = groups
    }

    /// Whose jobs it sees; nil for those of all users.
    package var owner: UInt32? { isAdmin ? nil : uid }

    package func sees(_ job: JobRow) -> Bool { !job.isRemoving && (isAdmin || job.owner == uid) }
}

/// Which jobs a subscription covers, and how often it reports progress.
package struct WatchScope: Sendable, Hashable {
    package enum Subject: Sendable, Hashable {
        /// Jobs that were looked at and are the caller's.
        case jobs([JobID])
        case tag(String)
        case all
    }

    package var subject: Subject
    /// The least number of seconds between two reports of a job's progress, rounded up to two digits, so that watches
    /// have few different ones.
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
