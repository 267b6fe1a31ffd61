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
    package let groups: CallerGroups?
    /// Where a body beyond `limits.inlineResult` is put; its directory exists.
    package let bodyPath: String
    /// That directory, where it is open already.
    package let bodyDirectory: OpenDirectory?
    /// Bytes that such a body may have.
    package let roomForBody: Int64
    /// Told the size of such a body once it is on stable storage.
    package let keptBody: @Sendable (Int64) -> Void
    /// Seconds that this attempt may take, or nil. Unlike a cancelled download, one that fails by this can be resumed.
    package let timeout: Double?
    /// Keeps room for the result until it is stored.
    package let memory: RunMemory
    /// The checkpoint that this link's source saved in an earlier attempt or an earlier run of the daemon.
    package let checkpoint: JSON?
    /// Whether what a broken-off download fetched is kept for a retry.
    package let mayResume: Bool
    /// Connections that it may have to its host at a time.
    package let connections: Int
    /// Told of a server that asks to be left alone, and refuses only one of the connections of a source that goes on.
    package let reportRefusal: @Sendable (JobError) -> Void
    /// Whether a failure that is retryable is tried again without being asked for.
    package let mayRetry: Bool
    /// Whether a link of another job will go on with the checkpoint that it has.
    package let isUnfinished: @Sendable (JobID, Int) async -> Bool
    /// Says what the source's progress counts; without it, bytes.
    package let countsIn: @Sendable (Progress.Unit) -> Void
    /// Keeps a checkpoint durably; it succeeds once a crash cannot undo it.
    package let saveCheckpoint: @Sendable (JSON?) -> Deferred<Void, any Error>
    /// What is remembered of the last download to this absolute path.
    package let lastDownload: @Sendable (String) -> Deferred<JSON?, any Error>
    /// Remembers a download to this absolute path.
    package let recordDownload: @Sendable (String, JSON) -> Deferred<Void, any Error>

    package init(
        job: JobID, link: Int, attempt: Int, owner: UInt32, groups: CallerGroups? = nil, bodyPath: String,
        bodyDirectory: OpenDirectory? = nil, roomForBody: Int64 = .max,
        keptBody: @escaping @Sendable (Int64) -> Void = { _ in }, timeout: Double? = nil,
        memory: RunMemory = RunMemory(), checkpoint: JSON?, mayResume: Bool = true, mayRetry: Bool = false,
        connections: Int = 1,
        isUnfinished: @escaping @Sendable (JobID, Int) async -> Bool = { _, _ in true },
        reportRefusal: @escaping @Sendable (JobError) -> Void = { _ in },
        countsIn: @escaping @Sendable (Progress.Unit) -> Void = { _ in },
        saveCheckpoint: @escaping @Sendable (JSON?) -> Deferred<Void, any Error>,
        lastDownload: @escaping @Sendable (String) -> Deferred<JSON?, any Error>,
        recordDownload: @escaping @Sendable (String, JSON) -> Deferred<Void, any Error>
    ) {
        self.job = job
        self.link = link
        self.attempt = attempt
        self.owner = owner
        self.groups = groups
        self.bodyPath = bodyPath
        self.bodyDirectory = bodyDirectory
        self.roomForBody = roomForBody
        self.keptBody = keptBody
        self.timeout = timeout
        self.memory = memory
        self.checkpoint = checkpoint
        self.mayResume = mayResume
        self.mayRetry = mayRetry
        self.connections = connections
        self.isUnfinished = isUnfinished
        self.reportRefusal = reportRefusal
        self.countsIn = countsIn
        self.saveCheckpoint = saveCheckpoint
        self.lastDownload = lastDownload
        self.recordDownload = recordDownload
    }
}
