/// A job as the core decides by it: its row, without its spec and without the values that flow through it.
///
/// A row is the truth about a job. Nothing that is only in memory decides what happens to it.
package struct JobRow: Sendable, Hashable {
    /// What a job waits for; of a ready or finished job and of one whose run is at work ``nothing``.
    package enum Waiting: Int, Sendable, CaseIterable {
        case nothing
        /// Scheduled or queued: for a place among the children of its list that run at once.
        case gate
        /// Running: for its children.
        case children
        /// Running: for the time that its `timer` source names.
        case timer
        /// Queued: for children or files of an earlier run to be removed.
        case cleaning
        /// Running: for the timeout of a `timer` source that names a longer time.
        case timeout
    }

    /// Why nothing but `finally` links runs any more.
    package enum Stop: String, Sendable {
        case cancelled
        case deadline

        /// The failure that the next link gets.
        package var error: JobError {
            switch self {
            case .cancelled: JobError(.cancelled, "The job was cancelled; retry it to run it again.")
            case .deadline:
                JobError(.deadline, "The job passed its deadline; submit it with a longer \"deadline\" or retry it.")
            }
        }
    }

    /// The list that a child belongs to.
    package struct Parent: Sendable, Hashable {
        package var job: JobID
        /// The link of the parent that made it.
        package var link: Int
        /// The opening of the list (``ListRow/id``).
        package var list: Int64
        /// Its index among its siblings, from 0.
        package var index: Int
        /// The lists around it, from 1.
        package var depth: Int

        package init(job: JobID, link: Int, list: Int64, index: Int, depth: Int) {
            self.job = job
            self.link = link
            self.list = list
            self.index = index
            self.depth = depth
        }
    }

    /// The link at which a chain failed or was stopped: where a retry goes on.
    package struct FailedLink: Sendable, Hashable {
        package var link: Int
        /// What had come into it; nil for the source.
        package var incoming: Carried?

        package init(link: Int, incoming: Carried?) {
            self.link = link
            self.incoming = incoming
        }
    }

    // What was submitted.
    package var id: JobID
    package let owner: UInt32
    /// The groups of the process that submitted it, or that set its schedule; nil where the system's databases say which groups
    /// its owner is in.
    package let groups: CallerGroups?
    package let parent: Parent?
    package let terms: JobTerms
    /// Bytes of its spec.
    package let specSize: Int
    /// Bytes of what is stored of it with the job: less where a template or a file has the rest.
    package let storedSpecSize: Int
    package let createdAt: Timestamp

    // Where it stands.
    package var state: JobState
    package var waiting = Waiting.nothing
    /// Grows by one with each change that is stored; a reader tells by it which of two looks is the newer.
    package var version: Int64 = 1
    /// The run that is at work for it; only of a running job.
    package var run: RunID?
    /// Why nothing but `finally` links runs any more.
    package var stop: Stop?
    /// It is being removed, and no reader shows it.
    package var isRemoving = false

    // Times. Those named `due` and `deadline` are by the steady clock.
    /// When a scheduled job, a timer, or a list with a timeout goes on.
    package var due: SteadyTime?
    /// The time of day until which a scheduled job waits. It decides where `due` is nil, and is only shown where it is not.
    package var notBefore: Timestamp?
    package var deadline: SteadyTime?
    package var startedAt: Timestamp?
    package var finishedAt: Timestamp?

    // Its chain.
    /// The link that runs or runs next; 0 is the source. Of a finished job the last one that ran.
    package var link = 0
    /// Attempts of that link so far.
    package var attempt = 0
    package var linkStartedAt: Timestamp?
    /// The host (name and port) that its present link asks, where that is known before it runs.
    package var host: String?
    /// What goes into the next link; of a finished job its outcome. Nil before the source ended.
    package var carried: Carried?
    package var outcomes: [LinkOutcome] = []
    package var failedLink: FailedLink?
    /// Why the last attempt of the present link failed, while it waits for the next.
    package var lastFailure: JobError?
    /// The files that hold long values of its links, until it is removed or retried from before that link.
    package var blobs: [LinkBlob] = []
    /// Bytes of the checkpoints of its transfers.
    package var checkpointSize = 0
    /// Children made by its lists so far.
    package var children = 0
    /// How often in a row the daemon was killed while a source of the present link was at work.
    package var crashes = 0

    package init(
        id: JobID = 0, owner: UInt32, groups: CallerGroups?, parent: Parent?, terms: JobTerms, specSize: Int,
        storedSpecSize: Int? = nil, createdAt: Timestamp, state: JobState
    ) {
        self.id = id
        self.owner = owner
        self.groups = groups
        self.parent = parent
        self.terms = terms
        self.specSize = specSize
        self.storedSpecSize = storedSpecSize ?? specSize
        self.createdAt = createdAt
        self.state = state
    }

    package var plan: JobPlan { terms.plan }
    package var queue: String { terms.queue }
    package var priority: Int { terms.priority }
    package var key: String? { terms.key }
    package var tags: [String] { terms.tags }
}

/// A long value of a link in a file of the blob store.
package struct LinkBlob: Sendable, Hashable {
    package let link: Int
    package let blob: BlobReference

    package init(link: Int, blob: BlobReference) {
        self.link = link
        self.blob = blob
    }
}

/// One run of one job's source, by one life of one daemon; never used twice.
package struct RunID: Sendable, Hashable, Comparable {
    /// Counts the starts of daemons on this store.
    package let life: Int64
    package let number: Int64

    package init(life: Int64, number: Int64) {
        self.life = life
        self.number = number
    }

    package static func < (left: RunID, right: RunID) -> Bool {
        (left.life, left.number) < (right.life, right.number)
    }
}

/// Milliseconds by a clock that goes on over restarts and reboots and is never set.
package typealias SteadyTime = Int64

extension JobRow {
    /// Bytes that a job takes up on disk beside its texts.
    package static let fixedSize: Int64 = 256

    /// What it takes up on disk, in bytes, as quotas count it.
    package var size: Int64 {
        var size = Self.fixedSize + Int64(storedSpecSize) + Int64(checkpointSize) + (groups?.storedSize ?? 0)
        size = size.saturatingAdding(carried?.size ?? 0)
        size = size.saturatingAdding(failedLink?.incoming?.size ?? 0)
        size = size.saturatingAdding(Int64(lastFailure?.json.size ?? 0))
        for outcome in outcomes { size += outcome.size }
        for blob in blobs where !holds(blob.blob) { size = size.saturatingAdding(blob.blob.size) }
        return size
    }

    /// Whether a value that is counted already is this file.
    private func holds(_ blob: BlobReference) -> Bool {
        carried?.blob == blob || failedLink?.incoming?.blob == blob
    }

    /// Where it stands in the starting order of its queue.
    package var position: ReadyPosition { ReadyPosition(priority: priority, id: id) }

    /// Whether it waits for nothing but a slot and its host.
    package var isReady: Bool { state == .queued && waiting == .nothing && !isRemoving }

    /// The step of its present link; nil where the link passes on what came in.
    package var step: JobPlan.Step? {
        if stop != nil, link > 0, !plan.isFinally(link) { return nil }
        return plan.step(link, for: carried)
    }

    /// Whether its present link runs either way, after a stop too.
    package var isAtFinally: Bool { link > 0 && plan.isFinally(link) }
}
