/// A job's id; ids count up and are never reused.
package typealias JobID = Int64

/// A job as clients see it: the parts of its row and spec that a ``JobView`` shows.
package struct Job: Sendable {
    package let id: JobID
    package var spec: JobSpec
    /// The uid of the owner.
    package let owner: UInt32
    /// The job whose list contains it.
    package var parent: JobID?
    package let state: JobState
    package let createdAt: Timestamp
    /// The time at which a scheduled job continues.
    package var notBefore: Timestamp?
    package var startedAt: Timestamp?
    package var finishedAt: Timestamp?
    /// The current or next link, 0 for the source; of a finished job, the last link that ran.
    package var link = 0
    /// Attempts of that link so far.
    package var attempt = 0
    /// The input of the next link, or the outcome of a finished job; nil until the source ends.
    package var carried: Outcome?
    /// The size of a result left in its file, in bytes of JSON; `carried` is null then.
    package var storedResult: Int?
    package var outcomes: [LinkOutcome] = []
    /// The failure of the current link's last attempt, while it waits for the next.
    package var lastFailure: JobError?
    /// Children that its lists have made so far.
    package var children = 0

    package init(id: JobID, spec: JobSpec, owner: UInt32, state: JobState, createdAt: Timestamp) {
        self.id = id
        self.spec = spec
        self.owner = owner
        self.state = state
        self.createdAt = createdAt
    }
}
