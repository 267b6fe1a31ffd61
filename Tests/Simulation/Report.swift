import JobModel

/// Totals of all runs.
struct Figures {
    var seeds = 0
    var nanoseconds: Int64 = 0
    /// The part with active users, before the remaining work ran to its end.
    var nanosecondsOfUsers: Int64 = 0
    var events = 0
    var rounds = 0
    var failedCommits = 0
    var effects = 0
    var runs = 0
    var brokenOff = 0
    var crashes = 0
    var cleanStops = 0
    /// Of nodes, and rounds of those that others took to be gone.
    var pauses = 0
    var lostLives = 0
    var clockSets = 0
    var storageFaults = 0
    var badRows = 0
    var hostileActs = 0
    var submitted = 0
    /// Jobs submitted for schedule times.
    var scheduled = 0
    var comparisons = 0
    var failedSeeds = 0
    var jobsByEnd: [JobState: Int] = [:]

    private static let sums: [any WritableKeyPath<Figures, Int> & Sendable] = [
        \.seeds, \.events, \.rounds, \.failedCommits, \.effects, \.runs, \.brokenOff, \.crashes, \.cleanStops,
        \.pauses, \.lostLives,
        \.clockSets, \.storageFaults, \.badRows, \.hostileActs, \.submitted, \.scheduled, \.comparisons, \.failedSeeds,
    ]

    mutating func add(_ other: Figures) {
        for sum in Self.sums { self[keyPath: sum] += other[keyPath: sum] }
        nanoseconds += other.nanoseconds
        nanosecondsOfUsers += other.nanosecondsOfUsers
        jobsByEnd.merge(other.jobsByEnd, uniquingKeysWith: +)
    }

    /// Returns the closing table; `seconds` is CPU time.
    func table(seconds: Double) -> String {
        let hours = Double(nanoseconds) / 3.6e12
        let hoursOfUsers = Double(nanosecondsOfUsers) / 3.6e12
        var rows: [(String, String)] = [
            ("seeds", "\(seeds)"), ("failed", "\(failedSeeds)"), ("simulated hours", Self.rounded(hours)),
            ("of these, with users at work", Self.rounded(hoursOfUsers)), ("events", "\(events)"),
            ("rounds", "\(rounds)"), ("rounds that were not committed", "\(failedCommits)"),
            ("jobs submitted", "\(submitted)"), ("jobs of schedules", "\(scheduled)"), ("runs", "\(runs)"),
            ("runs told to end", "\(brokenOff)"),
        ]
        for state in JobState.allCases where state.isTerminal {
            rows.append(("jobs \(state.rawValue)", "\(jobsByEnd[state, default: 0])"))
        }
        rows += [
            ("crashes", "\(crashes)"), ("clean stops", "\(cleanStops)"),
            ("pauses of nodes", "\(pauses)"), ("rounds after a node's lease", "\(lostLives)"),
            ("clocks set", "\(clockSets)"),
            ("storage faults", "\(storageFaults)"), ("bad rows", "\(badRows)"), ("hostile acts", "\(hostileActs)"),
            ("memories compared with one made anew", "\(comparisons)"), ("seconds of CPU", Self.rounded(seconds)),
            ("simulated hours per second of CPU", Self.rounded(hours / max(0.001, seconds))),
            ("of these, with users at work", Self.rounded(hoursOfUsers / max(0.001, seconds))),
        ]
        let width = rows.map(\.0.count).max() ?? 0
        return rows.map { $0.0 + String(repeating: " ", count: width - $0.0.count + 2) + $0.1 }.joined(separator: "\n")
    }

    private static func rounded(_ number: Double) -> String {
        let tenths = Int((number * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}
