package import DeferredKit
package import JobModel

/// The job for which a source runs, and what the source may use and store.
package struct SourceContext: Sendable {
    package let job: JobID
    package let link: Int
    /// Counted from 1.
    package let attempt: Int
    package var restarts = 0
    /// When the first attempt at the link began; a retry by hand begins anew.
    package var linkStartedAt: Timestamp?
    package let owner: UInt32
    /// The groups of the process that submitted the job; nil for the owner's groups in the system's databases.
    package var groups: CallerGroups?
    /// The path for a body beyond `limits.inlineResult`; its directory exists.
    package let bodyPath: String
    /// The path of the log of a program's output, in the same directory.
    package var logPath: String
    /// Called with the size of a program's output whenever that grows.
    package var reportOutput: @Sendable (Int64) -> Void = { _ in }
    /// The directory of ``bodyPath``, if it is open.
    package var bodyDirectory: OpenFile?
    /// The most bytes that such a body, or the log, may have.
    package var roomForBody = Int64.max
    /// Called with the size of such a body once it is on stable storage.
    package var keptBody: @Sendable (Int64) -> Void = { _ in }
    /// The most seconds for this attempt; unlike a cancelled download, one that times out can be resumed.
    package var timeout: Double?
    /// Holds the lease of the memory that the result takes, until it is stored.
    package var memory = Handover<Lease>()
    /// The checkpoint that an earlier attempt saved.
    package var checkpoint: JSON?
    /// Whether an interrupted download keeps its data for a retry.
    package var mayResume = true
    /// Limits a download instead of what its spec says.
    package var rate: RateLimiter?
    package var queueRate: RateLimiter?
    /// Gets what stops the transfer without cancelling it, once it has begun.
    package var control = Handover<TransferControl>()
    /// The most connections to the host at a time.
    package var connections = 1
    /// Reads the transfers that jobs will resume, at most so many.
    package var unfinishedTransfers: @Sendable (Int) -> Deferred<[UnfinishedTransfer], any Error> = { _ in
        .succeeded([])
    }
    /// Called when a server refuses one of several connections and asks to be left alone.
    package var reportRefusal: @Sendable (JobError) -> Void = { _ in }
    /// Sets the unit of the progress; bytes without it.
    package var countsIn: @Sendable (Progress.Unit) -> Void = { _ in }
    /// Counts bytes of bodies as they arrive or are sent.
    package var transferred: @Sendable (Int) -> Void = { _ in }
    /// Saves a checkpoint; succeeds once it is durable.
    package var saveCheckpoint: @Sendable (JSON?) -> Deferred<Void, any Error> = { _ in .succeeded(()) }
    package var lastDownload: @Sendable (String) -> Deferred<JSON?, any Error> = { _ in .succeeded(nil) }
    package var recordDownload: @Sendable (String, JSON) -> Deferred<Void, any Error> = { _, _ in .succeeded(()) }

    package init(job: JobID, link: Int, attempt: Int, owner: UInt32, bodyPath: String) {
        self.job = job
        self.link = link
        self.attempt = attempt
        self.owner = owner
        self.bodyPath = bodyPath
        logPath = bodyPath + ".log"
    }
}
