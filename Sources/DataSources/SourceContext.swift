package import DeferredKit
package import JobModel

/// For whom and for what a source runs, and what it may keep.
package struct SourceContext: Sendable {
    package let job: JobID
    package let link: Int
    /// From 1.
    package let attempt: Int
    /// The uid whose folder a relative download path lies in.
    package let owner: UInt32
    /// Where a body beyond `limits.inlineResult` is put; its folder exists.
    package let bodyPath: String
    /// Seconds that this attempt may take, or nil. Unlike a cancelled download, one that fails by this can be resumed.
    package let timeout: Double?
    /// Keeps room for the result until it is stored.
    package let memory: RunMemory
    /// What this link's source noted in an earlier attempt or an earlier run of the daemon.
    package let note: JSON?
    /// Whether what a broken-off download fetched is kept for a retry.
    package let mayResume: Bool
    /// Keeps a note durably; it succeeds once a crash cannot undo it.
    package let saveNote: @Sendable (JSON?) -> Deferred<Void, any Error>
    /// What is remembered of the last download to this absolute path.
    package let lastDownload: @Sendable (String) -> Deferred<JSON?, any Error>
    /// Remembers a download to this absolute path.
    package let rememberDownload: @Sendable (String, JSON) -> Deferred<Void, any Error>

    package init(
        job: JobID, link: Int, attempt: Int, owner: UInt32, bodyPath: String, timeout: Double? = nil,
        memory: RunMemory = RunMemory(), note: JSON?, mayResume: Bool = true,
        saveNote: @escaping @Sendable (JSON?) -> Deferred<Void, any Error>,
        lastDownload: @escaping @Sendable (String) -> Deferred<JSON?, any Error>,
        rememberDownload: @escaping @Sendable (String, JSON) -> Deferred<Void, any Error>
    ) {
        self.job = job
        self.link = link
        self.attempt = attempt
        self.owner = owner
        self.bodyPath = bodyPath
        self.timeout = timeout
        self.memory = memory
        self.note = note
        self.mayResume = mayResume
        self.saveNote = saveNote
        self.lastDownload = lastDownload
        self.rememberDownload = rememberDownload
    }
}
