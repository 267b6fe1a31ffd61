package import JobModel

/// Chosen by the core's caller and never reused.
package typealias RequestID = Int64
/// Chosen by the core's caller and never reused.
package typealias SubscriptionID = Int64

/// An input of the core.
package enum CoreInput: Sendable {
    /// Answered by exactly one ``CoreEffect/answer(_:_:)`` unless abandoned.
    case request(RequestID, CoreRequest, Caller)
    /// A client no longer wants the answer to this request.
    case abandon(RequestID)
    /// A subscriber has disconnected.
    case unsubscribe(SubscriptionID)
    /// An event of a run; dropped if the core no longer knows the run.
    case run(RunID, RunEvent)
    /// The files named by ``CoreEffect/removeFiles(_:)`` are removed, or their removal failed.
    case cleaned(WorkID)
    /// The output of a job's lost run, with its size; 0 if there is none.
    case measured(JobID, BlobReference)
    /// The job requested by ``CoreEffect/prepare(_:)``.
    case prepared(SchedulePreparation, Result<NewJob, ProtocolError>)
    /// A time has come, or work is left over (``Core/wantsTick``).
    case tick
    /// The disk that holds the state is short of space, for this reason, or has enough again (nil).
    case room(shortage: String?)
    /// The rules of the schedules' time zones, without unreadable ones.
    case zones([String: ZoneRules])
    /// The reloaded configuration.
    case configure(CoreSettings)
    /// The last input: no job starts any more, and open waits are refused.
    case stop

    /// Whether a client is told when its round fails; other inputs are handed in again.
    package var isRequest: Bool { if case .request = self { true } else { false } }
}

package typealias WorkID = Int64

/// The clock readings and the random number of an input; the core itself reads no clock and draws none.
package struct CoreMoment: Sendable, Hashable {
    /// The time of day, which can be set.
    package var wall: Timestamp
    /// Milliseconds that never decrease, not even across restarts.
    package var steady: SteadyTime
    /// A random number in 0 ..< 1, for the pause before a retry.
    package var random: Double

    package init(wall: Timestamp, steady: SteadyTime, random: Double = 0.5) {
        self.wall = wall
        self.steady = steady
        self.random = random
    }

    /// Returns the steady time after this many seconds, at most ten years; NaN counts as 0.
    func steady(after seconds: Double) -> SteadyTime {
        let bounded = seconds > 0 ? min(seconds, 315_360_000) : 0
        return steady.saturatingAdding(Int64((bounded * 1000).rounded(.up)))
    }
}

/// An event of a run.
package enum RunEvent: Sendable {
    /// The expanded step needs this host (name and port), and the run has no permit for it.
    /// ``CoreEffect/proceed(_:host:connections:)`` or ``CoreEffect/yield(_:)`` follows.
    case host(String, connections: Int)
    /// The step's program is on another node only; the run is given up. ``CoreEffect/yield(_:)`` follows.
    case elsewhere(node: String)
    /// The step is a list with this many children. ``CoreEffect/makeChildren(_:from:)`` or the run's end follows.
    case list(ListRow)
    /// The next children of its list, in order; `isLast` marks the final batch.
    case children([NewChildRow], isLast: Bool)
    /// The step waits for this many seconds. The run is over.
    case timer(Double)
    /// The step waits for this job. The run is over.
    case job(JobID)
    /// A server asked for a pause; the source continues.
    case refused(JobError)
    /// The data for resuming a transfer after a restart; nil drops it.
    case checkpoint([UInt8]?, SaveReply)
    /// A download to a path finished; the data validates it later.
    case download(path: String, [UInt8], SaveReply)
    case ended(RunEnd)
}

extension RunEvent {
    /// The files that come with it, to be removed if it arrives too late.
    package var files: [BlobReference] {
        switch self {
        case .ended(let end): end.files
        case .list(let list): list.template?.blob.map { [$0] } ?? []
        case .children(let children, _): children.compactMap(\.blob)
        default: []
        }
    }
}

/// The engine calls it once the round of its event is committed, or with the reason why that failed.
package typealias SaveReply = @Sendable (StoreError?) -> Void

package struct RunEnd: Sendable {
    package let outcome: Carried
    /// A file that the outcome's text names, such as a response body, and that belongs to the job.
    package let body: BlobReference?
    /// Transferred bytes, of a list those of its children.
    package let bytes: Int64
    /// The output of its program.
    package let output: BlobReference?
    /// The URL that it asked for, if expressions made it.
    package let url: String?

    /// The files of its outcome.
    var values: [BlobReference] { [body, outcome.blob].compactMap(\.self) }
    var files: [BlobReference] { values + [output].compactMap(\.self) }

    package init(
        _ outcome: Carried, body: BlobReference? = nil, bytes: Int64 = 0, output: BlobReference? = nil,
        url: String? = nil
    ) {
        self.outcome = outcome
        self.body = body
        self.output = output
        self.url = url
        self.bytes = bytes
    }
}
