package import JobModel

/// What is to be done once a round is committed, in the order of the list.
package enum CoreEffect: Sendable {
    case answer(RequestID, CoreAnswer)
    /// A run begins: its step is to be expanded, and its source to be started.
    case start(RunOrder)
    /// The run has a permit for the host that it named, and may use so many connections.
    case proceed(RunID, host: String, connections: Int)
    /// The run goes no further; nothing more is told of it.
    case yield(RunID)
    /// The children of a run's list are to be made, from this index on.
    case makeChildren(RunID, from: Int)
    /// A run is to end. ``RunEvent/ended(_:)`` follows once it has.
    case cancel(RunID)
    case notify([SubscriptionID], JobChange)
    /// How far the list of a job has come; nil where that is over.
    case list(JobID, ListRow?)
    /// Every job of this wait has ended or is gone; one may run again since.
    case waitOver(RequestID)
    /// A job of a schedule is to be made of its spec. ``CoreInput/prepared(_:_:)`` follows.
    case prepare(SchedulePreparation)
    /// What transfers have left is to be removed. ``CoreInput/cleaned(_:)`` follows.
    case removeFiles(WorkRow)
    /// Files that no row names any more.
    case unlink([BlobReference])
    case saved(SaveID)
    /// All queues, as they are now.
    case queues([QueueStatus])
    /// ``CoreInput/zones(_:)`` is to follow, with the rules of these zones as they are now.
    case readZones([String])
    case log(CoreLog)
}

/// A run that begins.
package struct RunOrder: Sendable {
    package enum Kind: Sendable {
        /// The present step of the job's chain.
        case step
        /// The outcome of this list is to be made of its children's.
        case gather(ListRow)
    }

    package let run: RunID
    package let kind: Kind
    /// The job as it is stored.
    package let job: JobRow
    /// The spec, where it was at hand.
    package let document: NewJobRow.Document?
    /// The host that it has a permit for, and how many connections it may use.
    package let host: String?
    package let connections: Int
    /// Seconds that this attempt may take, by its timeout and by the job's deadline.
    package let timeout: Double?
    /// An earlier attempt, or one before a restart, may have left something that this one goes on with.
    package let mayResume: Bool
    /// A failure that is retryable is tried again without being asked for.
    package let mayRetry: Bool
    /// Bytes that its owner may still store: a value in a file has to fit.
    package let room: Int64
}

/// A job of a schedule that is to be made.
package struct SchedulePreparation: Sendable, Hashable {
    package let key: ScheduleKey
    /// The time that it is for.
    package let time: Timestamp
    /// The request that has it submitted by hand; nil for one of its times, whose job has a key.
    package let request: RequestID?
}

/// A change of a job that subscribers are told.
package struct JobChange: Sendable {
    package let row: JobRow
    /// Its spec, where that was at hand.
    package let document: NewJobRow.Document?
    /// What it is made of with its item, where its spec is short and its list is open.
    package let template: StoredValue?
    package var isLast: Bool { row.state.isTerminal }
}
