package import JobModel

/// Identifies a write, so that its result finds what waits for it. Never used twice while the daemon runs.
package typealias WriteID = Int64
package typealias ReadID = Int64
/// One attempt of one source.
package typealias RunID = Int64
/// Files that are to be removed.
package typealias CleanUpID = Int64
/// A spec of a schedule that is being checked.
package typealias CheckID = Int64
/// Chosen by the caller of the core, never twice.
package typealias RequestID = Int64
/// Chosen by the caller of the core, never twice.
package typealias SubscriptionID = Int64

/// Everything that the core can react to. It does nothing by itself.
package enum CoreInput: Sendable {
    /// The first input: the core reads what the last daemon left. Requests may come once `CoreEffect.started` did.
    case start
    case request(RequestID, CoreRequest, Caller)
    /// Nobody wants the answer to this request any more.
    case abandon(RequestID)
    /// A subscriber is gone.
    case unsubscribe(SubscriptionID)
    /// A write is durable, or left nothing behind.
    case written(WriteID, Result<StoreWritten, StoreError>)
    case rows(ReadID, Result<StoreRows, StoreError>)
    /// How far sources have come, the latest of each.
    case progress([ProgressReport])
    /// A source ended by itself. `size` is the outcome's `measuredSize`, where that was reckoned before; `random` is drawn from
    /// 0 ..< 1, for the pause before a retry.
    case ended(RunID, Outcome, size: OutcomeSize? = nil, ProgressReport?, random: Double)
    /// A server asked one of a source's connections to leave it alone for a time, and the source goes on with the others.
    case refused(RunID, JobError)
    /// What was to be removed is gone, or could not be removed.
    case cleanedUp(CleanUpID)
    /// What ``ScheduledSpec/checked(by:)`` gave.
    case checked(CheckID, Result<NewJob, CoreError>)
    /// The disk of the state has little room left, in these words, or has enough again.
    case room(shortage: String?)
    /// Others are connected than before.
    case users(ConnectedUsers)
    /// The time that ``JobCore/nextWake`` gave has come. Any other input at that time does the same, and nothing is
    /// done twice. It is wanted soon after the wall clock was set, too.
    case time
    /// The rules of zones that `CoreEffect.readZones` asked for, without those that cannot be read.
    case zones([String: ZoneRules])
    /// Follows `CoreEffect.yield`, behind the inputs that came meanwhile.
    case resume
    /// Follows `CoreEffect.turn`.
    case turn(UInt32)
    /// The last input but for writes: nothing is started or answered with success any more.
    case stop
}

/// The latest progress of a run.
package struct ProgressReport: Sendable, Hashable {
    package var run: RunID
    package var progress: Progress
    /// How often the source has reported since the run began, this report among them.
    package var updates: Int

    package init(run: RunID, progress: Progress, updates: Int) {
        self.run = run
        self.progress = progress
        self.updates = updates
    }
}
