import JobCore
import JobModel

/// What the oracle knows of a job: its durable row, and what happened to it since.
final class KnownJob: CustomStringConvertible {
    let id: JobID
    let parent: KnownJob?
    /// As it is stored.
    var row: Job
    var children: [Int: [KnownJob]] = [:]
    /// A retry of it was asked for, from there, and is not stored yet.
    var retryAsked: Job.RetryPoint?
    var cancelAsked = false
    /// Counts its retries.
    var generation = 0
    /// When it was last retried, by the monotonic clock.
    var retriedAt: Int64 = -1
    /// A cancel was answered, so nothing but `finally` links may start.
    var isCancelled = false
    /// The source at work.
    var run: RunID?
    /// What the source of the present attempt ended with, as the core was told.
    var ended: (link: Int, attempt: Int, outcome: Outcome, random: Double, wall: Timestamp)?
    /// The last start in this life, so that none comes twice.
    var started: (life: Int, link: Int, attempt: Int)?
    /// The highest wall time since its row was stored.
    var dueSeen = false
    /// Crashes in a row that found it marked.
    var crashes = 0
    /// It was marked when the last daemon was killed, and that is not stored yet.
    var crashIsDue = false
    var removeAsked = false
    /// Where it counts as work that can start.
    var ready: Shares.Place?

    init(_ row: Job, parent: KnownJob?) {
        id = row.id
        self.row = row
        self.parent = parent
    }

    var description: String {
        let step = row.step?.type.map { " (\($0.rawValue))" } ?? ""
        let above = parent.map { ", below \($0.id), which is \($0.row.state) at link \($0.row.link)" } ?? ""
        let stop = row.stop.map { ", stopped by \($0.rawValue)" } ?? ""
        return
            "\(row.state) at link \(row.link)\(step) in \(row.spec.queue) of user \(row.owner), attempt \(row.attempt)"
            + "\(row.isGated ? ", gated" : "")\(above)\(stop), crashes \(row.crashes), due \(row.notBefore?.description ?? "-")"
    }

    var root: KnownJob { parent?.root ?? self }
    var isOver: Bool { row.state.isTerminal }

    /// Whether something above it says that no link of it may start but `finally` ones.
    var isOverruled: Bool {
        var next: KnownJob? = self
        while let job = next {
            if job.isCancelled { return true }
            if let place = job.row.parent, let above = job.parent {
                if above.isOver || above.row.link != place.link || above.row.stop != nil { return true }
                if above.row.outcomes.contains(where: { $0.link == place.link }) { return true }
            }
            next = job.parent
        }
        return false
    }

    /// Whether a job above it is over, so that the core does not know any more what it is below of.
    var isOrphan: Bool {
        guard let parent else { return row.parent != nil }
        return parent.isOver || parent.row.stop != nil || parent.row.link != row.parent?.link || parent.isOrphan
    }

    /// Whether a cancel of it, or of what is above it, was asked for, or what is above may have ended otherwise.
    var stopHasCause: Bool {
        var next: KnownJob? = self
        while let job = next {
            if job.cancelAsked { return true }
            if job !== self, job.isOver || job.row.stop != nil { return true }
            next = job.parent
        }
        return parent != nil
    }
}
