package import JobModel

/// What is to be done about an input, in the order of the list. Carrying one out never takes a look at what a job
/// means.
package enum CoreEffect: Sendable {
    case write(WriteID, StoreWrite)
    case read(ReadID, StoreRead)
    /// See `JobStore.mark`.
    case mark(JobID, isWorking: Bool)
    /// A source begins; its end comes as `CoreInput.ended`.
    case start(SourceRun)
    /// A source is cancelled. Where its end is awaited that comes as `CoreInput.ended`; else the core has forgotten it, and
    /// its end, if it comes, has no effect.
    case cancel(RunID, awaitsEnd: Bool)
    /// The `.part`s that downloads of these links kept for a retry, or left in a crash, are to be removed; none is running.
    /// `CoreInput.cleanedUp` follows.
    case discardParts(CleanUpID, job: JobID, links: ClosedRange<Int>, owner: UInt32)
    /// The bodies and `.part` files of removed jobs are to be removed. `CoreInput.cleanedUp` follows.
    case cleanUp(CleanUpID, [RemovedJob])
    /// The job of a schedule is to be admitted, by its spec alone; that of a large one takes several milliseconds.
    /// `CoreInput.checked` follows.
    case check(CheckID, ScheduledSpec)
    /// Exactly one for each request, but for those that were abandoned.
    case answer(RequestID, CoreAnswer)
    case notify([SubscriptionID], JobChange)
    /// Rows by ascending job, each job once.
    case progress([SubscriptionID], [ProgressRow])
    /// The daemon is ready for requests, or cannot start.
    case started(Result<Void, StoreError>)
    /// `CoreInput.zones` is to follow, with the rules of these zones as they are now.
    case readZones([String])
    /// `CoreInput.resume` is to be sent once the inputs that wait now were handled.
    case yield
    /// `CoreInput.turn` is to be sent once it is the turn of this owner: what the core does then can take several
    /// milliseconds. There is one at a time for each owner.
    case turn(UInt32)
    case log(CoreLog)
}

/// A source that begins.
package struct SourceRun: Sendable {
    package let run: RunID
    package private(set) var parameters: SourceParameters
    package let job: JobID
    package let link: Int
    /// From 1.
    package let attempt: Int
    package let owner: UInt32
    /// The groups of the process that submitted its job, where they are known.
    package let groups: CallerGroups?
    /// Seconds that this attempt may take; the source enforces it.
    package let timeout: Double?
    /// An earlier attempt, or one before a restart, may have left something that this one goes on with.
    package let mayResume: Bool
    /// A failure that is retryable is tried again without being asked for.
    package let mayRetry: Bool
    /// Connections that it may have to its host at a time.
    package let connections: Int
    /// Bytes that its owner may still store: a body in a file has to fit.
    package let roomForBody: Int64

    /// The same, but that it does nothing.
    package var withoutParameters: SourceRun {
        var run = self
        run.parameters = .value(.null)
        return run
    }
}

/// A message for the log.
package struct CoreLog: Sendable, Hashable {
    package enum Level: Sendable, Hashable {
        case info
        case notice
        case warning
        case error
        /// A broken invariant: a defect of the daemon.
        case defect
    }

    package enum Content: Sendable, Hashable {
        case message(String, job: JobID?, queue: String?)
        /// What happened to a job; it becomes words only where it is written.
        case job(JobLogEntry)
    }

    package let level: Level
    package let content: Content
    /// What an administrator may want to be told of.
    package let event: CatalogEvent?

    package init(
        _ level: Level, _ message: String, job: JobID? = nil, queue: String? = nil, event: CatalogEvent? = nil
    ) {
        self.level = level
        content = .message(message, job: job, queue: queue)
        self.event = event
    }

    package init(_ entry: JobLogEntry) {
        level = .info
        content = .job(entry)
        if case .failed = entry.event { event = .jobFailed } else { event = nil }
    }

    /// The job that it is about.
    package var job: JobID? {
        switch content {
        case .message(_, let job, _): job
        case .job(let entry): entry.job
        }
    }

    /// A sentence.
    package var message: String {
        switch content {
        case .message(let text, _, _): text
        case .job(let entry): entry.message
        }
    }
}
