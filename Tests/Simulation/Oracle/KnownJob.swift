import JobCore
import JobModel

/// What the oracle knows of a job: its durable row, and what happened to it since.
final class KnownJob: CustomStringConvertible {
    let id: JobID
    let parent: KnownJob?
    /// As it is stored.
    var row: Job { didSet { size = row.storedSize } }
    /// What its row takes up.
    private(set) var size: Int64
    var children: [Int: [KnownJob]] = [:]
    var retries = Retries()
    var cancelAsked = false
    /// Counts its retries.
    var generation = 0
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
    var ready: Shares.Key?

    init(_ row: Job, parent: KnownJob?) {
        id = row.id
        self.row = row
        size = row.storedSize
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
        if isCancelled { return true }
        var job = self
        while let link = job.row.parent?.link, let above = job.parent {
            if above.isPast(link) { return true }
            // Whatever stops what is above leaves this link to run, with all below it.
            if above.isFinally(link) { return false }
            if above.row.stop != nil || above.isCancelled { return true }
            job = above
        }
        return false
    }

    private func isPast(_ link: Int) -> Bool {
        isOver || row.link != link || row.outcomes.contains { $0.link == link }
    }

    private func isFinally(_ link: Int) -> Bool {
        link > 0 && row.spec.links.indices.contains(link - 1) && row.spec.links[link - 1].isFinally
    }

    /// Whether a cancel of it, or of what is above it, was asked for, or the list that it belongs to is over or decided.
    func stopHasCause(at time: Timestamp) -> Bool {
        if cancelAsked { return true }
        guard let parentage = row.parent, let parent else { return false }
        if parent.isPast(parentage.link) { return true }
        if parent.isFinally(parentage.link) { return parent.isDecided(parentage.link) || parent.removeAsked }
        if parent.row.stop != nil || parent.row.deadlineAt.map({ $0 <= time }) ?? false { return true }
        return parent.isDecided(parentage.link) || parent.stopHasCause(at: time)
    }

    /// Whether the list may end before all of its children are over: by what they came to, or as it takes too long.
    private func isDecided(_ link: Int) -> Bool {
        guard let step = row.spec.stepOfList(link), case .source(let source) = step.action,
            step.timeout ?? row.spec.timeout == nil
        else { return true }
        let children = children[link] ?? []
        switch source["mode"]?.string {
        case "all": return children.contains { $0.row.state == .failed || $0.row.state == .cancelled }
        case "first": return children.contains { $0.row.state == .succeeded }
        default: return false
        }
    }
}
