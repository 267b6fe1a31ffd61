import JobCore
import JobModel

/// The sources at work, in place of servers, files and the network.
struct SimulatedSources {
    struct Run {
        let run: SourceRun
        var outcome: Outcome
        /// Seconds from one report of progress to the next; nil for none.
        let reportPause: Double?
        let total: Int64
        var completed: Int64 = 0
        var updates = 0
    }

    private(set) var runs: [RunID: Run] = [:]

    mutating func add(_ run: Run) { runs[run.run.run] = run }
    mutating func remove(_ run: RunID) -> Run? { runs.removeValue(forKey: run) }

    /// Tells a program to end, which goes on until it has; false for anything else.
    mutating func breakOff(_ id: RunID, _ outcome: Outcome) -> Bool {
        guard let run = runs[id], run.run.parameters.program != nil else { return false }
        runs[id]?.outcome = outcome
        return true
    }

    /// Moves a run on; gives what it reports.
    mutating func report(_ id: RunID) -> (report: ProgressReport, pause: Double)? {
        guard var run = runs[id], let pause = run.reportPause else { return nil }
        run.updates += 1
        run.completed = min(run.total, run.completed + run.total / 10 + 1)
        runs[id] = run
        let progress = Progress(completed: run.completed, total: run.total)
        return (ProgressReport(run: id, progress: progress, updates: run.updates), pause)
    }

    /// The runs that are at work, by number.
    var all: [RunID] { runs.keys.sorted() }

    func job(of run: RunID) -> JobID? { runs[run]?.run.job }

    /// The daemon is gone; downloads that were at work leave their parts.
    mutating func forget(interruptedIn files: inout SimulatedFiles) {
        for run in runs.values {
            if case .download = run.run.parameters { files.addPart(of: run.run.job, link: run.run.link) }
        }
        runs = [:]
    }
}

/// Parts of downloads that lie on the disk.
struct SimulatedFiles {
    private(set) var parts: [JobID: Set<Int>] = [:]

    mutating func addPart(of job: JobID, link: Int) { parts[job, default: []].insert(link) }

    mutating func discardParts(of job: JobID, links: ClosedRange<Int>) {
        parts[job] = parts[job]?.filter { !links.contains($0) }
        if parts[job]?.isEmpty == true { parts[job] = nil }
    }

    mutating func remove(_ job: JobID) { parts[job] = nil }

    /// What a daemon does when it starts: files of jobs that are no more go.
    mutating func removeAll(except isKept: (JobID) -> Bool) {
        for job in parts.keys where !isKept(job) { parts[job] = nil }
    }
}

extension SourceParameters {
    /// The name of the program that it runs.
    var program: String? {
        guard case .program(let spec) = self, case .named(let name) = spec.subject else { return nil }
        return name
    }
}
