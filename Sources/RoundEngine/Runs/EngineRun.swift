import DataSources
import DeferredKit
import JobModel
import RoundCore

/// A run that the core has begun, until the round that takes its end is committed.
struct EngineRun {
    enum State {
        /// Its step is being read and expanded, or it waits for the core: for its host, or to make children.
        case expanding
        /// Its source is at work.
        case working
        /// It was told to end, and its source has not ended yet.
        case stopping
        /// The last that is told of it is on its way into a round.
        case ended
    }

    /// What the core knows of it.
    var live: LiveRun
    let isDownload: Bool
    var state = State.expanding
    /// It ends as a timer that the core waits for.
    var isTimer = false
    /// Its input could not be stored by itself.
    var isSuspect = false
    /// What waits for its host, with its order. What is kept while it works has nothing of them: they may hold long values.
    var transfer: (Expansion.Transfer, RunOrder)?
    var children: ChildMaker?
    var work: Deferred<JSON, any Error>?
    let progress: RunProgress
    /// Keeps room for its result until that is stored.
    let memory = RunMemory()

    init(_ order: RunOrder, reports: ProgressReports) {
        let isGathering = if case .gather = order.kind { true } else { false }
        live = LiveRun(
            run: order.run, job: order.job.id, owner: order.job.owner, queue: order.job.queue, hasSlot: !isGathering,
            host: order.host, permits: order.connections,
            endsLater: !isGathering && order.job.step?.source?.endsLater == true)
        let row = order.job
        isDownload = !isGathering && row.plan.step(row.link, for: row.carried)?.source == .download
        progress = RunProgress(of: order.job.id, reports: reports)
    }
}
