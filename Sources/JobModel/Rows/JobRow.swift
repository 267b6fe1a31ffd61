/// A job as the core sees it: its row, without its spec and the values that flow through it.
///
/// The row is the truth about a job. Nothing in memory alone decides what happens to it.
package struct JobRow: Sendable, Equatable {
    /// The condition that a job waits for; ``nothing`` for ready and finished jobs, and during a run.
    package enum Waiting: Int, Sendable, CaseIterable {
        case nothing
        /// Scheduled, held or queued: for a place among its list's concurrent children.
        case gate
        /// Running: for its children.
        case children
        /// Running: for the time of its `timer` source.
        case timer
        /// Queued: for the removal of an earlier run's children or files.
        case cleaning
        /// Running: for the timeout of a `timer` source with a longer time.
        case timeout
        /// Queued: for the end of another suspect's run.
        case suspect
        /// Running: for another job (``JobRow/awaits``), or with a run, for that job's result.
        case job
    }

    /// Why only `finally` links still run.
    package enum Stop: String, Sendable {
        case cancelled, deadline

        /// The failure that the next link receives.
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
        /// The parent's link that made it.
        package var link: Int
        /// The opening of the list (``ListRow/id``).
        package var list: Int64
        /// Its index among its siblings, from 0.
        package var index: Int
        /// The number of enclosing lists, from 1.
        package var depth: Int

        package init(job: JobID, link: Int, list: Int64, index: Int, depth: Int) {
            self.job = job
            self.link = link
            self.list = list
            self.index = index
            self.depth = depth
        }
    }

    /// The link at which a chain failed or was stopped, from which a retry resumes.
    package struct FailedLink: Sendable, Hashable {
        package var link: Int
        /// The link's input; nil for the source.
        package var incoming: Carried?

        package init(link: Int, incoming: Carried?) {
            self.link = link
            self.incoming = incoming
        }
    }

    // Submitted values.
    package var id: JobID
    package let owner: UInt32
    /// The groups of the process that submitted the job or set its schedule; nil means its owner's groups in the
    /// system's databases.
    package let groups: CallerGroups?
    package let parent: Parent?
    /// Stored by ``JobTransaction/replaceTerms(of:was:)``.
    package var terms: JobTerms
    /// The size of its spec, in bytes.
    package let specSize: Int
    /// The size stored with the job, in bytes: less if a template or a file has the rest.
    package let storedSpecSize: Int
    package let createdAt: Timestamp

    // Status.
    package var state: JobState
    package var waiting = Waiting.nothing
    /// Grows by one with each stored change; it tells readers which of two reads is newer.
    package var version: Int64 = 1
    package var run: RunID?
    /// Why only `finally` links still run.
    package var stop: Stop?
    /// Whether it is under removal, which hides it from readers.
    package var isRemoving = false
    /// Whether unfinished jobs depend on it, so that it is kept.
    package var hasDependents = false
    /// The job that it waits for.
    package var awaits: JobID?
    /// Whether its end is told to `hooks.finished`.
    package var notifies = false
    /// The bytes per second of its downloads, instead of what the spec says: 0 for no limit.
    package var rate: Int?
    /// The node on which it and its children run; nil for any.
    package var node: String?
    /// Whether it is bound to that node only as long as there is a part, and the node is not gone.
    package var followsPart = false

    // Times; `due` and `deadline` use the steady clock.
    /// The time at which a scheduled job, a timer, or a list or wait with a timeout continues, or a running suspect is cleared.
    package var due: SteadyTime?
    /// The wall-clock time until which a scheduled job waits; if `due` is set, it is only shown.
    package var notBefore: Timestamp?
    package var deadline: SteadyTime?
    package var startedAt: Timestamp?
    package var finishedAt: Timestamp?

    // The chain.
    /// The current or next link, 0 for the source; of a finished job, the last link that ran.
    package var link = 0
    /// Attempts of that link so far.
    package var attempt = 0
    package var linkStartedAt: Timestamp?
    /// The host (name and port) that its current link contacts, if known before it runs.
    package var host: String?
    /// The URL that its current link asked for last, if expressions made it.
    package var url: String?
    /// The input of the next link, or the outcome of a finished job; nil until the source ends.
    package var carried: Carried?
    package var outcomes: [LinkOutcome] = []
    package var failedLink: FailedLink?
    /// The failure of the current link's last attempt, while it waits for the next.
    package var lastFailure: JobError?
    /// Files of its links: values are kept until removal or a retry from before that link, the latest outputs until removal.
    package var blobs: [LinkBlob] = []
    /// The size of its transfers' checkpoints, in bytes.
    package var checkpointSize = 0
    /// Children that its lists have made so far.
    package var children = 0
    /// Consecutive times that the daemon was killed while the source of the current link ran.
    package var crashes = 0
    /// Runs that were lost with their daemon and repeated.
    package var restarts = 0

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
    package var label: String? { terms.label }
    /// Whether no other job of its owner can have its key.
    package var holdsKey: Bool { key != nil && (terms.keepsKey || !state.isTerminal) }
}

/// A file of the blob store that belongs to a link: a long value, or the output of an attempt of its program.
package struct LinkBlob: Sendable, Hashable {
    package let link: Int
    package let blob: BlobReference
    /// The attempt whose output it holds; 0 for a value.
    package var attempt = 0

    package init(link: Int, blob: BlobReference, attempt: Int = 0) {
        self.link = link
        self.blob = blob
        self.attempt = attempt
    }

    package var isOutput: Bool { attempt > 0 }
}

/// One run of one job's source in one life of a daemon; never reused.
package struct RunID: Sendable, Hashable, Comparable {
    /// The number of daemon starts on this store.
    package let life: Int64
    package let number: Int64

    package init(life: Int64, number: Int64) {
        self.life = life
        self.number = number
    }

    package static func < (left: RunID, right: RunID) -> Bool { (left.life, left.number) < (right.life, right.number) }

    /// The file with the output of a program, so that it is found even if the daemon is killed.
    package func output(size: Int64 = 0) -> BlobReference { BlobReference(life: life, number: number, size: size) }

    /// A copy of it, which other nodes read while the program runs. No row refers to it.
    package func outputSoFar(size: Int64 = 0) -> BlobReference {
        BlobReference(life: life, number: number + 1 << 41, size: size)
    }
}

/// Milliseconds of a clock that continues over restarts and reboots and is never set.
package typealias SteadyTime = Int64

extension JobRow {
    /// The size of a job on disk besides its texts, in bytes.
    package static let fixedSize: Int64 = 256

    /// The size on disk in bytes, as quotas count it.
    package var size: Int64 {
        var size = Self.fixedSize + Int64(storedSpecSize) + Int64(checkpointSize) + (groups?.storedSize ?? 0)
        size += Int64((label?.utf8.count ?? 0) + (url?.utf8.count ?? 0) + (node?.utf8.count ?? 0))
        for tag in tags { size += Int64(tag.utf8.count) }
        size = size.saturatingAdding(carried?.size ?? 0)
        size = size.saturatingAdding(failedLink?.incoming?.size ?? 0)
        size = size.saturatingAdding(Int64(lastFailure?.json.size ?? 0))
        for outcome in outcomes { size += outcome.size }
        for blob in blobs where !holds(blob.blob) { size = size.saturatingAdding(blob.blob.size) }
        return size
    }

    /// Returns whether this file holds a value that is already counted.
    private func holds(_ blob: BlobReference) -> Bool { carried?.blob == blob || failedLink?.incoming?.blob == blob }

    /// The position in the starting order of its queue.
    package var position: ReadyPosition { ReadyPosition(priority: priority, id: id) }

    /// Whether it waits only for a slot and its host.
    package var isReady: Bool { state == .queued && waiting == .nothing && !isRemoving }

    /// The file with the body that belongs to its result.
    package var resultBody: BlobReference? {
        guard case .success(.inline)? = carried else { return nil }
        let link = outcomes.last { !plan.isFinally($0.link) }?.link ?? 0
        return plan.mayHaveBody(link) ? blobs.last { $0.link == link && !$0.isOutput }?.blob : nil
    }

    package func hasOutput(of link: Int) -> Bool { blobs.contains { $0.link == link && $0.isOutput } }

    /// The step of its current link; nil if the link passes its input on.
    package var step: JobPlan.Step? {
        if stop != nil, link > 0, !plan.isFinally(link) { return nil }
        return plan.step(link, for: carried)
    }

    /// Whether it may be what kills the daemon, so that it runs alone among its kind.
    package var isSuspect: Bool { crashes >= 2 }

    /// The state in which it will end, as its chain is now.
    package var outcomeSoFar: JobState {
        switch (stop, carried) {
        case (.cancelled, _): .cancelled
        case (nil, .success): .succeeded
        default: .failed
        }
    }

    /// Whether a change from an earlier row may concern clients or runs of other nodes.
    package func isNews(after old: JobRow) -> Bool {
        state != old.state || link != old.link || run != old.run || stop != old.stop || rate != old.rate
            || isRemoving != old.isRemoving
    }

    /// Whether its current link runs in any case, even after a stop.
    package var isAtFinally: Bool { link > 0 && plan.isFinally(link) }
}
