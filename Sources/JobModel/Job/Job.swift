/// The id of a job. Ids count up and are never used twice.
package typealias JobID = Int64

/// A job as it is shown: what a ``JobView`` tells of its row and its spec.
package struct Job: Sendable {
    package let id: JobID
    package var spec: JobSpec
    /// The uid that owns it.
    package let owner: UInt32
    /// The job whose list it belongs to.
    package var parent: JobID?
    package let state: JobState
    package let createdAt: Timestamp
    /// While it is scheduled: when it goes on.
    package var notBefore: Timestamp?
    package var startedAt: Timestamp?
    package var finishedAt: Timestamp?
    /// The link that runs or runs next; 0 is the source. Of a finished job the last one that ran.
    package var link = 0
    /// Attempts of that link so far.
    package var attempt = 0
    /// What goes into the next link; of a finished job its outcome. Nil before the source ended.
    package var carried: Outcome?
    /// The size of a long result that was left in its file, in bytes of its JSON; `carried` is null then.
    package var storedResult: Int?
    package var outcomes: [LinkOutcome] = []
    /// Why the last attempt of the present link failed, while it waits for the next.
    package var lastFailure: JobError?
    /// Children made by its lists so far.
    package var children = 0

    package init(id: JobID, spec: JobSpec, owner: UInt32, state: JobState, createdAt: Timestamp) {
        self.id = id
        self.spec = spec
        self.owner = owner
        self.state = state
        self.createdAt = createdAt
    }
}
