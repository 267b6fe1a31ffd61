package import DeferredKit
package import JobModel

/// For whom and for what a source runs, and what it may keep.
package struct SourceContext: Sendable {
    package let job: JobID
    package let link: Int
    /// From 1.
    package let attempt: Int
    /// The uid whose directory a relative download path lies in.
    package let owner: UInt32
    /// The groups whose rights it has beside its owner's; nil for those that the system's databases have the owner in.
    package var groups: CallerGroups?
    /// Where a body beyond `limits.inlineResult` is put; its directory exists.
    package let bodyPath: String
    /// That directory, where it is open already.
    package var bodyDirectory: OpenDirectory?
    /// Bytes that such a body may have.
    package var roomForBody = Int64.max
    /// Told the size of such a body once it is on stable storage.
    package var keptBody: @Sendable (Int64) -> Void = { _ in }
    /// Seconds that this attempt may take, or nil. Unlike a cancelled download, one that fails by this can be resumed.
    package var timeout: Double?
    /// Keeps room for the result until it is stored.
    package var memory = RunMemory()
    /// The checkpoint that this link's source saved in an earlier attempt or an earlier run of the daemon.
    package var checkpoint: JSON?
    /// Whether what a broken-off download fetched is kept for a retry.
    package var mayResume = true
    /// Connections that it may have to its host at a time.
    package var connections = 1
    /// Told of a server that asks to be left alone, and refuses only one of the connections of a source that goes on.
    package var reportRefusal: @Sendable (JobError) -> Void = { _ in }
    /// Whether a failure that is retryable is tried again without being asked for.
    package var mayRetry = false
    /// Whether a link of another job will go on with the checkpoint that it has.
    package var isUnfinished: @Sendable (JobID, Int) async -> Bool = { _, _ in true }
    /// Says what the source's progress counts; without it, bytes.
    package var countsIn: @Sendable (Progress.Unit) -> Void = { _ in }
    /// Keeps a checkpoint durably; it succeeds once a crash cannot undo it.
    package let saveCheckpoint: @Sendable (JSON?) -> Deferred<Void, any Error>
    /// What is remembered of the last download to this absolute path.
    package let lastDownload: @Sendable (String) -> Deferred<JSON?, any Error>
    /// Remembers a download to this absolute path.
    package let recordDownload: @Sendable (String, JSON) -> Deferred<Void, any Error>

    package init(
        job: JobID, link: Int, attempt: Int, owner: UInt32, bodyPath: String,
        saveCheckpoint: @escaping @Sendable (JSON?) -> Deferred<Void, any Error>,
        lastDownload: @escaping @Sendable (String) -> Deferred<JSON?, any Error>,
        recordDownload: @escaping @Sendable (String, JSON) -> Deferred<Void, any Error>
    ) {
        self.job = job
        self.link = link
        self.attempt = attempt
        self.owner = owner
        self.bodyPath = bodyPath
        self.saveCheckpoint = saveCheckpoint
        self.lastDownload = lastDownload
        self.recordDownload = recordDownload
    }
}
