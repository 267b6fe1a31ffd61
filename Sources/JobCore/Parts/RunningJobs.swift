package import JobModel

/// A live run, kept by the engine until the round that takes its end is committed.
package struct LiveRun: Sendable, Hashable {
    package let run: RunID
    package let job: JobID
    package let owner: UInt32
    package let queue: String
    /// Whether it holds a slot of its queue; a run that only composes a list's outcome holds none.
    package let hasSlot: Bool
    /// The host of its permits, and their number.
    package var host: String?
    package var permits = 0
    /// Whether it takes time to stop, as a program does.
    package var endsLater = false
    package var isStopping = false
}

/// The live runs: only these hold slots and permits.
package struct RunningJobs {
    private var runs: [RunID: LiveRun] = [:]
    private var byJob: [JobID: RunID] = [:]

    init() {}

    init(_ runs: [LiveRun]) {
        for run in runs { insert(run) }
    }

    subscript(run: RunID) -> LiveRun? { runs[run] }
    package var count: Int { runs.count }
    package var all: some Collection<LiveRun> { runs.values }

    /// Returns the live run of a job, even one whose result no longer matters.
    func run(of job: JobID) -> LiveRun? { byJob[job].flatMap { runs[$0] } }

    mutating func insert(_ run: LiveRun) {
        runs[run.run] = run
        byJob[run.job] = run.run
    }

    mutating func update(_ run: LiveRun) {
        if runs[run.run] != nil { runs[run.run] = run }
    }

    /// Removes and returns a run.
    mutating func remove(_ id: RunID) -> LiveRun? {
        guard let run = runs.removeValue(forKey: id) else { return nil }
        if byJob[run.job] == id { byJob[run.job] = nil }
        return run
    }
}
