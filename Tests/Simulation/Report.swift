import JobModel

/// What all runs came to.
struct Figures {
    var seeds = 0
    var nanoseconds: Int64 = 0
    /// Of these, those in which users were at work: what was left then came to its end.
    var nanosecondsOfUsers: Int64 = 0
    var events = 0
    var effects = 0
    var runs = 0
    /// Programs that were told to end.
    var brokenOff = 0
    var crashes = 0
    var cleanStops = 0
    var clockSets = 0
    var storageFaults = 0
    var hostileBouts = 0
    var hostileActs = 0
    var submitted = 0
    var failedSeeds = 0
    var jobsByEnd: [JobState: Int] = [:]
    var checked: [(String, Int)] = []

    var hours: Double { Double(nanoseconds) / 3.6e12 }
    var hoursOfUsers: Double { Double(nanosecondsOfUsers) / 3.6e12 }

    mutating func add(_ other: Oracle.Checked) {
        let rows = [
            ("starts", other.starts), ("starts after a host was left alone", other.backOffs),
            ("starts with somebody to compare with", other.fairStarts),
            ("windows of 100 starts", other.fairWindows), ("queues with a free slot", other.idleSlots),
            ("counts", other.counts), ("outcomes of lists", other.listOutcomes), ("pages", other.pages),
            ("pauses before a retry", other.pauses), ("ends told to subscribers", other.ends), ("memory", other.memory),
            ("jobs of schedules", other.scheduled), ("times of schedules that are due", other.schedules),
        ]
        checked = rows.enumerated().map { ($1.0, $1.1 + (checked.isEmpty ? 0 : checked[$0].1)) }
    }

    mutating func add(_ other: Figures) {
        seeds += other.seeds
        nanoseconds += other.nanoseconds
        nanosecondsOfUsers += other.nanosecondsOfUsers
        events += other.events
        effects += other.effects
        runs += other.runs
        brokenOff += other.brokenOff
        crashes += other.crashes
        cleanStops += other.cleanStops
        clockSets += other.clockSets
        storageFaults += other.storageFaults
        hostileBouts += other.hostileBouts
        hostileActs += other.hostileActs
        submitted += other.submitted
        failedSeeds += other.failedSeeds
        jobsByEnd.merge(other.jobsByEnd, uniquingKeysWith: +)
        checked =
            checked.isEmpty
            ? other.checked : zip(checked, other.checked).map { ($0.0, $0.1 + $1.1) }
    }

    /// The closing table. `seconds` are of CPU time.
    func table(seconds: Double) -> String {
        var rows: [(String, String)] = [
            ("seeds", "\(seeds)"), ("failed", "\(failedSeeds)"), ("simulated hours", Self.rounded(hours)),
            ("of these, with users at work", Self.rounded(hoursOfUsers)),
            ("events", "\(events)"), ("jobs submitted", "\(submitted)"), ("sources run", "\(runs)"),
            ("programs told to end", "\(brokenOff)"),
        ]
        for state in JobState.allCases where state.isTerminal {
            rows.append(("jobs \(state.rawValue)", "\(jobsByEnd[state, default: 0])"))
        }
        rows += [
            ("crashes", "\(crashes)"), ("clean stops", "\(cleanStops)"), ("clocks set", "\(clockSets)"),
            ("storage faults", "\(storageFaults)"), ("hostile acts", "\(hostileActs)"),
        ]
        rows += checked.map { ("checked: \($0.0)", "\($0.1)") }
        rows += [
            ("seconds of CPU", Self.rounded(seconds)),
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
