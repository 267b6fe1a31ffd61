package import JobModel

/// Chosen by the caller of the core, never twice.
package typealias RequestID = Int64
/// Chosen by the caller of the core, never twice.
package typealias SubscriptionID = Int64

/// Everything that the core can react to.
package enum CoreInput: Sendable {
    /// Answered by exactly one ``CoreEffect/answer(_:_:)``, unless it is abandoned.
    case request(RequestID, CoreRequest, Caller)
    /// A client no longer wants the answer to this request.
    case abandon(RequestID)
    /// A subscriber is gone.
    case unsubscribe(SubscriptionID)
    /// Something happened to a run. What belongs to a run that the core no longer knows is dropped.
    case run(RunID, RunEvent)
    /// The files that ``CoreEffect/removeFiles(_:)`` named are gone, or could not be removed.
    case cleaned(WorkID)
    /// The job that ``CoreEffect/prepare(_:)`` asked for.
    case prepared(SchedulePreparation, Result<NewJob, CoreError>)
    /// A time has come, or there is more to do (``Core/wantsTick``).
    case tick
    /// The disk of the state has little room left, in these words, or has enough again.
    case room(shortage: String?)
    /// The rules of time zones that schedules go by, without those that cannot be read.
    case zones([String: ZoneRules])
    /// The configuration, read again.
    case configure(CoreSettings)
    /// The last input: nothing starts any more, and open waits are refused.
    case stop

    /// Whether a client is told when its round fails; all others come again.
    package var isRequest: Bool { if case .request = self { true } else { false } }
}

/// A row of ``WorkRow``.
package typealias WorkID = Int64

/// An input with what the engine knew when it took it: the core looks at no clock and draws nothing.
package struct CoreMoment: Sendable, Hashable {
    /// The time of day; it can be set.
    package var wall: Timestamp
    /// In milliseconds; it never falls, and goes on over restarts.
    package var steady: SteadyTime
    /// Drawn from 0 ..< 1, for the pause before a retry.
    package var random: Double

    package init(wall: Timestamp, steady: SteadyTime, random: Double = 0.5) {
        self.wall = wall
        self.steady = steady
        self.random = random
    }

    /// The steady time in so many seconds, at most ten years; a number that is none counts as 0.
    func steady(after seconds: Double) -> SteadyTime {
        let bounded = seconds > 0 ? min(seconds, 315_360_000) : 0
        return steady.saturatingAdding(Int64((bounded * 1000).rounded(.up)))
    }
}

/// What happens to a run.
package enum RunEvent: Sendable {
    /// Its step, once expanded, asks this host (name and port), and the run has no permit for it.
    /// ``CoreEffect/proceed(_:connections:)`` or ``CoreEffect/yield(_:)`` follows.
    case host(String, connections: Int)
    /// Its step is a list with so many children. ``CoreEffect/makeChildren(_:from:)`` or its end follows.
    case list(ListOpening)
    /// The next children of its list, in order; of the last ones `isLast` says so.
    case children([NewChildRow], isLast: Bool)
    /// Its step waits for so many seconds. The run is over.
    case timer(Double)
    /// A server asked to be left alone for a time, and the source goes on.
    case refused(JobError)
    /// What a transfer needs to go on after a restart; nil drops it. ``CoreEffect/saved(_:)`` follows.
    case checkpoint([UInt8]?, SaveID)
    /// A download to a path has ended, for a later validation. ``CoreEffect/saved(_:)`` follows.
    case download(path: String, [UInt8], SaveID)
    /// The run is over.
    case ended(RunEnd)
}

extension RunEvent {
    /// The files that go with it; they are to be removed where it comes too late.
    package var files: [BlobReference] {
        switch self {
        case .ended(let end): end.files
        case .list(let opening): opening.template?.blob.map { [$0] } ?? []
        case .children(let children, _): children.compactMap(\.blob)
        default: []
        }
    }
}

/// Identifies what was to be stored, so that its source hears of it.
package typealias SaveID = Int64

/// How a run ended.
package struct RunEnd: Sendable {
    package let outcome: Carried
    /// A file that the outcome names in its text, as the body of a response, and that goes with the job.
    package let body: BlobReference?
    /// Bytes that it moved, for the progress of the list above.
    package let bytes: Int64
    /// Bytes that it received, for the totals.
    package let received: Int64

    /// The files that go with it.
    var files: [BlobReference] { [body, outcome.blob].compactMap(\.self) }

    package init(_ outcome: Carried, body: BlobReference? = nil, bytes: Int64 = 0, received: Int64 = 0) {
        self.outcome = outcome
        self.body = body
        self.bytes = bytes
        self.received = received
    }
}

/// A list that a step opens.
package struct ListOpening: Sendable {
    package let mode: ListMode
    package let concurrency: Int?
    package let total: Int
    /// What the children are made of together.
    package let template: StoredValue?

    package init(mode: ListMode, concurrency: Int?, total: Int, template: StoredValue?) {
        self.mode = mode
        self.concurrency = concurrency
        self.total = total
        self.template = template
    }
}
