/// The id of a job. Ids count up and are never used twice.
package typealias JobID = Int64

/// A job with all that has happened to it: the value that is stored, shown and run.
package struct Job: Sendable, Hashable {
    /// Why nothing but `finally` links runs any more.
    package enum Stop: String, Sendable {
        case cancelled
        case deadline
    }

    /// The link at which a chain failed or was stopped: where a retry goes on.
    package struct FailedLink: Sendable, Hashable {
        /// The link that failed.
        package var link: Int
        /// What had come into it; nil for the source.
        package var incoming: Outcome? { carried?.outcome }
        let carried: MeasuredOutcome?
        /// Bytes of its JSON.
        package var incomingSize: Int64 { carried?.size.text ?? 0 }
        /// What it takes in memory.
        var incomingMemory: Int64 { carried?.size.memory ?? 0 }

        package init(link: Int, incoming: Outcome?) {
            self.init(link: link, carried: incoming.map { MeasuredOutcome($0) })
        }

        init(link: Int, carried: MeasuredOutcome?) {
            self.link = link
            self.carried = carried
        }
    }

    /// The list that a child belongs to.
    package struct Parent: Sendable, Hashable {
        package var job: JobID
        /// The link of the parent that made it.
        package var link: Int
        /// Its index among its siblings, from 0.
        package var index: Int
        /// The lists around it.
        package var depth: Int

        package init(job: JobID, link: Int, index: Int, depth: Int) {
            self.job = job
            self.link = link
            self.index = index
            self.depth = depth
        }
    }

    /// 0 until the store gave it an id.
    package var id: JobID
    package private(set) var spec: JobSpec
    /// The uid that owns it.
    package let owner: UInt32
    /// The groups of the process that submitted it, or that set its schedule; nil where the system's databases say which groups
    /// its owner is in, as for jobs of a daemon that did not store them.
    package var groups: CallerGroups?
    package let parent: Parent?
    package var state: JobState
    package let createdAt: Timestamp
    /// While it is scheduled: when it goes on.
    package var notBefore: Timestamp?
    package var deadlineAt: Timestamp?
    package var startedAt: Timestamp?
    package var finishedAt: Timestamp?
    /// The link that runs or runs next; 0 is the source. Of a finished job the last one that ran.
    package var link = 0
    /// Attempts of that link so far.
    package var attempt = 0
    package var linkStartedAt: Timestamp?
    /// What goes into the next link; of a finished job its outcome. Nil before the source ended.
    package var carried: Outcome? {
        get { measured?.outcome }
        set { measured = newValue.map { MeasuredOutcome($0) } }
    }
    var measured: MeasuredOutcome?
    /// Bytes of its JSON.
    package var carriedSize: Int64 { measured?.size.text ?? 0 }
    /// About what it takes in memory.
    package var carriedMemory: Int64 { measured?.size.memory ?? 0 }
    /// The size of a long result that was left in the store (``StoreRead/result(of:offset:length:)``), in bytes of its JSON;
    /// `carried` is null then. Only of a job that succeeded, which is never saved again.
    package var storedResult: Int?
    package var outcomes: [LinkOutcome] = []
    /// The sizes of bodies that are too large for a result, by link: each stands in a file until the job is removed, or
    /// another one of that link takes its name.
    package var bodies: [Int: Int] = [:]
    package var failedLink: FailedLink?
    /// Why the last attempt of the present link failed, while it waits for the next.
    package var lastFailure: JobError?
    package var stop: Stop?
    /// The host (name and port) that its present link asks, if that is known before it runs.
    package var host: String?
    /// Children made by its lists so far.
    package var children = 0
    /// How often in a row the daemon was killed while a source of the present link was at work.
    package var crashes = 0
    /// A child that waits for its list's own `concurrency`.
    package var isGated = false

    package init(
        id: JobID = 0, spec: JobSpec, owner: UInt32, parent: Parent? = nil, state: JobState, createdAt: Timestamp,
        notBefore: Timestamp? = nil, deadlineAt: Timestamp? = nil
    ) {
        self.id = id
        self.spec = spec
        self.owner = owner
        self.parent = parent
        self.state = state
        self.createdAt = createdAt
        self.notBefore = notBefore
        self.deadlineAt = deadlineAt
    }

    /// A job as it begins when submitted at `now`. `deadline` is the parent's, which a child cannot outlive.
    package init(
        submitting spec: JobSpec, owner: UInt32, parent: Parent? = nil, deadline: Timestamp? = nil, at now: Timestamp
    ) {
        let start = spec.notBefore ?? spec.delay.map { now.adding(seconds: $0) }
        let waits = start.map { $0 > now } ?? false
        let own = spec.deadline.map { now.adding(seconds: $0) }
        self.init(
            spec: spec, owner: owner, parent: parent, state: waits ? .scheduled : .queued, createdAt: now,
            notBefore: waits ? start : nil, deadlineAt: [own, deadline].compactMap(\.self).min())
    }

    /// The same job under the id that the store gave it.
    package func numbered(_ id: JobID) -> Job {
        var job = self
        job.id = id
        return job
    }

    /// The same job with its spec as the store reads it, as what is stored of a child is not all of it.
    package func reading(_ spec: JobSpec) -> Job {
        var job = self
        job.spec = spec
        return job
    }

    /// The step that link `link` runs for what came in.
    package var step: Step? {
        if let stop, link > 0 {
            return spec.links.indices.contains(link - 1) && spec.links[link - 1].isFinally
                ? spec.step(link, for: carried ?? .failure(stop.error)) : nil
        }
        return spec.step(link, for: carried)
    }
}

extension Job.Stop {
    /// The failure that the next link gets.
    package var error: JobError {
        switch self {
        case .cancelled: JobError(.cancelled, "The job was cancelled; retry it to run it again.")
        case .deadline:
            JobError(.deadline, "The job passed its deadline; submit it with a longer \"deadline\" or retry it.")
        }
    }
}

extension Job {
    /// Bytes that a job takes up on disk beside its texts.
    package static let rowSize: Int64 = 256
    /// What the store writes around a result.
    package static let resultFrame = Int64(Outcome.success(.null).json.size - JSON.null.size)
    /// Bytes of JSON beyond which a result is left in the store where jobs are read to be shown: no answer has room for it.
    package static let longestResultRead = JobPage.mostResults

    /// What it takes up on disk, in bytes: its spec, its result and its outcomes, and a little for the rest; and the files
    /// of its bodies.
    package var storedSize: Int64 {
        var size = Int64(spec.storedSize) + Self.rowSize + groupsSize
        if let storedResult {
            size = size.saturatingAdding(Int64(storedResult) + Self.resultFrame)
        } else {
            size = size.saturatingAdding(carriedSize)
        }
        for outcome in outcomes { size += outcome.size }
        return size.saturatingAdding(bodySize)
    }

    /// Bytes of its groups, which are part of what it takes up.
    package var groupsSize: Int64 { groups?.storedSize ?? 0 }

    /// What the files of its bodies take up, in bytes.
    package var bodySize: Int64 { bodies.values.reduce(0) { $0.saturatingAdding(Int64($1)) } }
}

/// The state of a job. `scheduled`, `queued` and `running` go on; the other three are terminal.
package enum JobState: String, Sendable, CaseIterable {
    /// Waits for a time: a delay or a retry.
    case scheduled
    /// Waits for a slot of its queue.
    case queued
    case running
    case succeeded
    case failed
    case cancelled

    package var isTerminal: Bool {
        switch self {
        case .scheduled, .queued, .running: false
        case .succeeded, .failed, .cancelled: true
        }
    }

    /// Its index in `allCases`, by which jobs are sorted and counted. A switch, as it is asked for with every change of a job. The
    /// database has numbers of its own, which never change.
    package var number: Int {
        switch self {
        case .scheduled: 0
        case .queued: 1
        case .running: 2
        case .succeeded: 3
        case .failed: 4
        case .cancelled: 5
        }
    }
}
