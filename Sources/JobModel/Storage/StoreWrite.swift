/// A change of what is stored. Each is made whole or not at all, and in the order of the calls.
package enum StoreWrite: Sendable {
    /// New jobs, numbered in their order. Answered with `submitted`.
    case submit([Job])
    /// The children that a link makes, with their parent. Answered with `numbered`; without numbers where the parent was
    /// removed meanwhile, when nothing is stored.
    case children(NewChildren)
    /// What has become of jobs. A job that was removed meanwhile stays so. Answered with `done`.
    case save([Job])
    /// A job and everything below it. Answered with `removed`.
    case remove(JobID)
    /// The children that link `fromLink` of a job and later ones made, everything below them, and these links' templates.
    /// Answered with `removed`.
    case removeChildren(of: JobID, fromLink: Int)
    /// Finished root jobs (with all below them) that ended before `finishedBefore`, and the earliest of those owners who
    /// have most, so that about `keeping` stay (`RetentionShares`); at most `atMost` roots. Answered with `removed`, empty
    /// where nothing is left to do.
    case purge(finishedBefore: Timestamp, keeping: Int, atMost: Int)
    /// The finished root jobs of an owner that ended first, with all below them: as many as take up `freeing` bytes, but at
    /// most `count`. Answered with `removed`.
    case purgeOldest(count: Int, freeing: Int64, owner: UInt32)
    /// The settings of a queue. Answered with `done`.
    case queue(QueueSettings)
    /// A schedule that is new, or replaces the one of that name, with the JSON of its spec. Answered with `done`.
    case setSchedule(Schedule, spec: JSON)
    /// What has become of a schedule, and the job that it submits, if any, which then is its last one. Answered with
    /// `submitted`: of the job.
    case advance(Schedule, Job?)
    /// A schedule, if it is there; its jobs stay. Answered with `done`.
    case removeSchedule(ScheduleKey)
    /// Writes and removes a byte, to see whether the storage works. Answered with `done`.
    case probe
}

/// What a write came to.
package enum StoreWritten: Sendable {
    case done
    case submitted([Submission])
    case numbered([JobID])
    case removed([RemovedJob])
}

/// What became of one job that was submitted.
package enum Submission: Sendable, Equatable {
    /// It was stored under this id.
    case created(JobID)
    /// Its key and spec are those of this earlier job.
    case joined(JobID, JobState)
    /// Its key belongs to this job, which has another spec; the new one was not stored.
    case conflict(JobID)
}

/// How a queue runs, as the configuration or an administrator says.
package struct QueueSettings: Sendable, Hashable {
    /// Queues that a configuration can make, and that there are at most where an administrator makes another.
    package static let most = 1000

    package var name: String
    /// Slots: jobs whose source works at the same time.
    package var concurrency: Int
    /// The most slots that one owner may have at a time; nil for the daemon's default.
    package var perUser: Int?
    package var isSuspended: Bool

    package init(name: String, concurrency: Int, perUser: Int? = nil, isSuspended: Bool = false) {
        self.name = name
        self.concurrency = concurrency
        self.perUser = perUser
        self.isSuspended = isSuspended
    }
}

/// A job that the store removed, with what has to be cleaned up after it.
package struct RemovedJob: Sendable, Hashable {
    package let id: JobID
    package let owner: UInt32
    package let queue: String
    package let state: JobState
    /// The last link that ran; bodies can be left of each up to that.
    package let links: Int
    /// Its stored size, in bytes.
    package let size: Int64
    /// The checkpoints of its unfinished transfers.
    package let checkpoints: [JSON]
    /// The job that it was below of, which may be among those removed with it; nil for one that was submitted.
    package let parent: JobID?
    package let tags: [String]

    package init(
        id: JobID, owner: UInt32, queue: String, state: JobState, links: Int, size: Int64 = 0,
        checkpoints: [JSON] = [], parent: JobID? = nil, tags: [String] = []
    ) {
        self.id = id
        self.owner = owner
        self.queue = queue
        self.state = state
        self.links = links
        self.size = size
        self.checkpoints = checkpoints
        self.parent = parent
        self.tags = tags
    }
}
