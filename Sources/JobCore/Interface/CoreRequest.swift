package import JobModel

/// What a caller asks for.
package enum CoreRequest: Sendable {
    /// New jobs. Answered with `submitted` once they are durable, in the order of the requests.
    case submit([NewJob])
    /// Answered with `job`.
    case job(JobID)
    /// Jobs whose wait was answered with `finished`. Answered with `jobs`, each in brief form, in the order asked for, or with
    /// `unfinished` where one of them is not finished any more.
    case jobs([JobID])
    /// Answered with `page`.
    case list(JobFilter)
    /// Answered once all are finished, with `job` where there is one and else with `finished`, or with the error `timeout`
    /// after so many seconds.
    case wait([JobID], timeout: Double?)
    /// Answered with `watching`; changes that come later are told to the subscription.
    case watch(WatchScope, SubscriptionID)
    /// Answered with `job`, once that is durable.
    case cancel(JobID)
    /// Answered with `job`, once that is durable.
    case retry(JobID, from: Job.RetryPoint)
    /// Answered with `done`.
    case remove(JobID)
    /// The result of a succeeded job, or where that is not in memory `length` bytes of it from `offset` on. Answered with
    /// `result`.
    case result(JobID, offset: Int = 0, length: Int = 0)
    /// Answered with `queues`.
    case queues
    /// Answered with `queue`.
    case setQueue(String, QueueChange)
    /// Answered with `schedule`, once that is durable.
    case setSchedule(NewSchedule)
    /// Answered with `schedule`.
    case schedule(ScheduleKey)
    /// Those that come after a name, of one owner or of all that the caller may see. Answered with `schedules`.
    case schedules(after: ScheduleKey?, owner: UInt32?, limit: Int)
    /// Answered with `done`.
    case removeSchedule(ScheduleKey)
    /// Submits its job now. Answered with `submitted`.
    case runSchedule(ScheduleKey)
    /// Answered with `schedule`.
    case suspendSchedule(ScheduleKey, isSuspended: Bool)
    /// Answered with `statistics`.
    case statistics
    /// Passes through the core and a write. Answered with `done`, also where the storage fails: a full disk is no hang.
    case probe
    /// What the configuration says, read again; nil leaves the policy as it is. Only the daemon itself asks for it. Answered
    /// with `done`. Jobs that were accepted before stay what they are; what of them is checked again, such as a URL whose
    /// expressions are filled in, is checked by what holds then.
    case configure(CoreSettings, policy: ResourcePolicy? = nil)
}

/// A job to be submitted, admitted by ``Admission``.
package struct NewJob: Sendable {
    package let spec: JobSpec
    /// The host that its source asks, where that is known.
    package let host: String?
    /// The queues that children in it name.
    package let queues: [NamedQueue]
    /// The subscription that gets the job's changes, from the next one on.
    package var subscription: SubscriptionID?

    package init(_ admitted: Admission.Admitted, subscription: SubscriptionID? = nil) {
        spec = admitted.spec
        host = admitted.host
        queues = admitted.queues
        self.subscription = subscription
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

    /// Whose jobs it sees; nil for everybody's.
    var owner: UInt32? { isAdmin ? nil : uid }

    func sees(_ job: Job) -> Bool { isAdmin || job.owner == uid }
}

/// Which jobs a subscription covers, and how often it reports progress.
package struct WatchScope: Sendable, Hashable {
    package enum Subject: Sendable, Hashable {
        case jobs([JobID])
        case tag(String)
        case all
    }

    package var subject: Subject
    /// The least number of seconds between two reports of a job's progress, rounded up to two digits: what is watched at the
    /// same interval is looked up once, so a user's watches must not all have different ones.
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

    /// The interval in milliseconds, from 1 to an hour.
    var milliseconds: Int { Int((interval * 1000).rounded()) }
}
