/// A question to the store. It sees every write that was answered before it was asked.
package enum StoreRead: Sendable {
    /// What a daemon needs when it starts. Answered with `recovery`.
    case recovery
    /// The jobs of these ids that there are, in their order, without long results; where an `owner` is named, only theirs,
    /// so that another's takes no longer than one that does not exist. Answered with `jobs`.
    case jobs([JobID], owner: UInt32? = nil)
    /// The first of these jobs that there are, in their order, without long results. Answered with `jobs`, a page of them.
    case firstJobs([JobID], owner: UInt32? = nil)
    /// The states of those of these jobs that there are; where an `owner` is named, only of theirs. Answered with `states`.
    case states([JobID], owner: UInt32? = nil)
    /// The jobs that a filter asks for, at most `filter.limit`, without long results. Answered with `jobs`, a page of them.
    case list(JobFilter)
    /// `length` bytes from `offset` on of the JSON of a succeeded job's result. Answered with `result`.
    case result(of: JobID, offset: Int, length: Int)
    /// The children that a link of a job made, by index, `limit` of them from index `from` on. Answered with `jobs`, a
    /// page of them.
    case children(of: JobID, link: Int, from: Int, limit: Int)
    /// The numbers and states of those children, by index. Answered with `childStates`.
    case childStates(of: JobID, link: Int)
    /// The gated children of a link that are queued, by index from `from` on, at most `limit`. Answered with `ready`.
    case gated(of: JobID, link: Int, from: Int, limit: Int)
    /// The gated children that are queued and whose list is over, or runs another link: what a daemon left that was killed
    /// before it had cancelled them. By parent, link and index, at most `limit`. Answered with `jobs`.
    case orphans(limit: Int)
    /// The first `limit` queued jobs of an owner in a queue, gated ones left out, in starting order (higher priority, then
    /// lower id) that come after a position, without those for the hosts in `excluding`. Answered with `ready`.
    case ready(queue: String, owner: UInt32, after: ReadyPosition?, excluding: Set<String>, limit: Int)
    /// The scheduled jobs whose time has come, earliest first, at most `limit`. Answered with `jobs`, a page of them.
    case due(at: Timestamp, limit: Int)
    /// The unfinished jobs whose deadline has passed, earliest first, at most `limit`. Answered with `jobs`, a page of them.
    case overdue(at: Timestamp, limit: Int)
    /// When the next scheduled job is due, the next deadline passes, and the first finished root job ended. Answered with
    /// `times`.
    case times
    /// A schedule with its spec. Answered with `schedules`: that one, or none.
    case schedule(ScheduleKey)
    /// The schedules that come after a name, by owner and name, of one owner or of all, at most `limit`; without long specs.
    /// Answered with `schedules`.
    case schedules(after: ScheduleKey?, owner: UInt32?, limit: Int)
}

/// What a read found.
package enum StoreRows: Sendable {
    case recovery(StoredState)
    case jobs([Job])
    case childStates([ChildState])
    case states([JobID: JobState])
    case ready([ReadyJob])
    case times(StoredTimes)
    /// Nil where there is no result.
    case result(ResultPart?)
    case schedules([StoredSchedule])
}

/// A part of the JSON of a result.
package struct ResultPart: Sendable, Hashable {
    package let bytes: [UInt8]
    /// Bytes of the whole.
    package let size: Int

    package init(bytes: [UInt8], size: Int) {
        self.bytes = bytes
        self.size = size
    }

    /// `length` bytes of `text` from `offset` on, as far as there are.
    package init(of text: [UInt8], offset: Int, length: Int) {
        let start = min(max(0, offset), text.count)
        self.init(bytes: Array(text[start..<(start + min(max(0, length), text.count - start))]), size: text.count)
    }
}

/// A child's number and state.
package struct ChildState: Sendable, Hashable {
    package let id: JobID
    package let index: Int
    package let state: JobState

    package init(id: JobID, index: Int, state: JobState) {
        self.id = id
        self.index = index
        self.state = state
    }
}

/// A queued job as the scheduler keeps it in memory.
package struct ReadyJob: Sendable {
    /// Bytes of a spec beyond which the job is read when its turn comes.
    package static let largestInline = 2 << 10

    package let position: ReadyPosition
    package let host: String?
    /// The list that it belongs to, and the link that made it.
    package let parent: Job.Parent?
    /// The job, unless its spec, or the template that it is made from, is large.
    package let job: Job?

    package init(position: ReadyPosition, host: String?, parent: Job.Parent?, job: Job?) {
        self.position = position
        self.host = host
        self.parent = parent
        self.job = job
    }
}

/// The next times that a stored job waits for.
package struct StoredTimes: Sendable, Hashable {
    package var due: Timestamp?
    package var deadline: Timestamp?
    package var firstEnd: Timestamp?
    package var lastEnd: Timestamp?

    package init(
        due: Timestamp? = nil, deadline: Timestamp? = nil, firstEnd: Timestamp? = nil, lastEnd: Timestamp? = nil
    ) {
        self.due = due
        self.deadline = deadline
        self.firstEnd = firstEnd
        self.lastEnd = lastEnd
    }
}

/// What a daemon finds when it starts.
package struct StoredState: Sendable {
    /// By owner, queue and state.
    package var counts: [JobCount]
    package var queues: [QueueSettings]
    /// The jobs that are stored as running, by id.
    package var running: [JobID]
    /// The jobs whose source was at work when the last daemon was killed, running ones among them; none after a clean stop.
    package var crashed: [Job]
    package var times: StoredTimes
    /// Without their specs.
    package var schedules: [StoredSchedule]

    package init(
        counts: [JobCount] = [], queues: [QueueSettings] = [], running: [JobID] = [], crashed: [Job] = [],
        times: StoredTimes = StoredTimes(), schedules: [StoredSchedule] = []
    ) {
        self.counts = counts
        self.queues = queues
        self.running = running
        self.crashed = crashed
        self.times = times
        self.schedules = schedules
    }
}

/// A position in the starting order of a queue.
package struct ReadyPosition: Sendable, Hashable, Comparable {
    package let priority: Int
    package let id: JobID

    package init(priority: Int, id: JobID) {
        self.priority = priority
        self.id = id
    }

    /// Whether `left` starts before `right`.
    package static func < (left: ReadyPosition, right: ReadyPosition) -> Bool {
        left.priority == right.priority ? left.id < right.id : left.priority > right.priority
    }
}

/// How many jobs of one owner stand in one state in one queue, and what they take up on disk.
package struct JobCount: Sendable, Hashable {
    package let owner: UInt32
    package let queue: String
    package let state: JobState
    package let count: Int
    /// The sum of the jobs' stored sizes, in bytes.
    package let bytes: Int64

    package init(owner: UInt32, queue: String, state: JobState, count: Int, bytes: Int64 = 0) {
        self.owner = owner
        self.queue = queue
        self.state = state
        self.count = count
        self.bytes = bytes
    }
}

extension StoreRead {
    /// Whose read it is; nil for the engine's own, and for what administrators ask of all.
    package var owner: UInt32? {
        switch self {
        case .jobs(_, let owner), .firstJobs(_, let owner), .states(_, let owner), .schedules(_, let owner, _): owner
        case .list(let filter): filter.owner
        case .ready(_, let owner, _, _, _): owner
        case .schedule(let key): key.owner
        case .recovery, .result, .children, .childStates, .gated, .orphans, .due, .overdue, .times: nil
        }
    }
}
