import DequeModule
import DeferredKit
import JobModel

/// A job that the engine holds in memory: it runs, or what became of it is being stored.
final class ActiveJob {
    var job: Job
    /// The step that runs.
    var work: Deferred<JSON, any Error>?
    /// Counts the steps, so that the end of one that was given up is told from that of the present one.
    var run = 0
    let progress: ProgressCell
    /// Who hears of it, and the version of the watches that this is of.
    var hearers: (version: Int, list: [JobWatches.Hearer]) = (-1, [])
    /// Whether it has one of its queue's places.
    var hasPlace = false
    /// The host of which it has one of the places.
    var host: String?
    /// Whether it counts as an open list.
    var countsAsList = false
    /// Whether it counts as an open timer.
    var countsAsTimer = false
    /// It waits for a place, in the middle of its chain.
    var isParked = false
    /// Its children, while a list of it runs.
    var join: ListJoin?
    /// Its children that are in memory.
    var children: Set<JobID> = []
    /// Children that wait for the list's own limit.
    var held: Deque<ReadyQueue.Entry> = []
    /// The progress of children that have ended.
    var endedBytes: Int64 = 0
    /// What could not be stored yet, and what follows once it is.
    var unsaved: Job.Action?
    /// Counts the saves, so that only the end of the latest one counts.
    var saves = 0

    init(_ job: Job, progress: ProgressCell) {
        self.job = job
        self.progress = progress
    }
}
