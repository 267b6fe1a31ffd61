package import JobModel

/// An effect to carry out once the round is committed, in list order.
package enum CoreEffect: Sendable {
    case answer(RequestID, CoreAnswer)
    /// Starts a run: expands its step and starts its source.
    case start(RunOrder)
    /// The run has a permit for the host that it named, and this many connections.
    case proceed(RunID, host: String, connections: Int)
    /// The run stops here, and the engine forgets it.
    case yield(RunID)
    /// Makes the children of a run's list from this index on.
    case makeChildren(RunID, from: Int)
    /// Stops a run; a download that `keepsPart` can be resumed. ``RunEvent/ended(_:)`` follows.
    case cancel(RunID, keepsPart: Bool)
    /// Changes the rate of a running download: bytes per second, or 0 for no limit; nil for the spec's.
    case setRate(RunID, Int?)
    /// Tells `hooks.finished` the end of a job.
    case tellHook(JobID, owner: UInt32)
    case notify([SubscriptionID], JobChange)
    /// A job of which these subscriptions learn nothing more, or all if nil, as another node removed it, maybe before its end was
    /// told here.
    case gone(JobID, for: [SubscriptionID]?)
    /// Subscriptions that cover more than the jobs that they name, and have missed changes.
    case missed([SubscriptionID])
    /// A job ended while it had no run.
    case endedWithoutRun(JobID)
    /// Progress of a job's list; nil once it is over.
    case list(JobID, ListRow?)
    /// Makes a schedule's job from its spec. ``CoreInput/prepared(_:_:)`` follows.
    case prepare(SchedulePreparation)
    /// Removes the partial files of transfers. ``CoreInput/cleaned(_:)`` follows.
    case removeFiles(WorkRow)
    /// Measures the output of a lost run. ``CoreInput/measured(_:_:)`` follows.
    case measure(JobID, BlobReference)
    /// Files that rows no longer reference.
    case unlink([BlobReference])
    /// All queues in their current state.
    case queues([QueueStatus])
    /// Reads the current rules of these zones. ``CoreInput/zones(_:)`` follows.
    case readZones([String])
    case log(CoreLog)
}

/// The parameters of a new run.
package struct RunOrder: Sendable {
    package enum Kind: Sendable {
        /// The current step of the job's chain.
        case step
        /// Composes the outcome of this list from its children's outcomes.
        case gather(ListRow)
        /// Takes over the result of another job, whose files get further names.
        case adopt(StoredValue, body: BlobReference?)
    }

    /// The run as the core knows it, with its host and permits.
    package let live: LiveRun
    package let kind: Kind
    package let job: JobRow
    /// The spec, if it was loaded.
    package let document: NewJobRow.Document?
    /// Bytes that its owner may still store; a value in a file has to fit.
    package let room: Int64

    package var run: RunID { live.run }
    /// Whether an earlier attempt, or one before a restart, may have left data to resume from.
    package var mayResume: Bool { job.checkpointSize > 0 }
}

/// A request to make a schedule's job.
package struct SchedulePreparation: Sendable, Hashable {
    package let key: ScheduleKey
    /// The time that the job is for.
    package let time: Timestamp
    /// The id of the boot that the job is for; nil if the schedule is not due at boots, or runs now.
    package let boot: String?
    /// The request to run the schedule now; nil for one of its times, whose job has a key.
    package let request: RequestID?
}

/// A job change for subscribers.
package struct JobChange: Sendable {
    package let row: JobRow
    /// Its spec, if it was loaded.
    package let document: NewJobRow.Document?
    /// The template that makes the job with its item, if its spec is short and its list is open.
    package let template: StoredValue?
}
