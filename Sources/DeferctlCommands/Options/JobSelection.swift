import ArgumentParser
import JobClient
import JobModel

/// An id, or a range of ids: `12`, `3-9`.
struct IDRange: ExpressibleByArgument, Sendable {
    let ids: ClosedRange<Int64>

    init?(argument: String) {
        let ends = argument.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false).map { Int64($0) }
        guard let first = ends.first ?? nil, let last = ends.last ?? nil, first > 0, first <= last
        else { return nil }
        ids = first...last
    }
}

/// Conditions for jobs that every verb on many jobs has.
struct JobConditions: ParsableArguments {
    @Option(parsing: .singleValue, help: .value("state", "Only jobs in this state; may be repeated."))
    var state: [JobState] = []

    @Option(help: .value("type", "Only jobs with a source of this type, such as download.")) var source: SourceType?
    @Option(help: .value("text", "Only the jobs with this key.")) var key: String?
    @Option(
        help: .value("time", "Only jobs submitted since this time, or so long ago: 'yesterday', 2h."),
        transform: writtenTime)
    var since: WrittenTime?

    @Option(
        help: .value("time", "Only jobs submitted before this time, or longer ago: 2026-12-01, 7d."),
        transform: writtenTime)
    var before: WrittenTime?

    @Option(
        help: .value("user", "Jobs of this user, or, with all, of all users; only for administrators."),
        transform: { $0 == "all" ? "all" : Int(try Accounts.uid($0)).json })
    var owner: JSON?

    func filter(queue: String?, tag: String?, label: String?) -> JobClient.Filter {
        var filter = JobClient.Filter()
        (filter.states, filter.source, filter.key) = (state.map(\.rawValue), source?.rawValue, key)
        (filter.since, filter.before) = (since?.past.description, before?.past.description)
        (filter.owner, filter.queue, filter.tag, filter.label) = (owner, queue, tag, label)
        return filter
    }
}

/// Conditions whose names mean something else for the verb `set`.
struct NameConditions: ParsableArguments {
    @Option(help: .value("name", "Only jobs of this queue."), completion: LiveCompletion.queues) var queue: String?
    @Option(help: .value("text", "Only jobs with this tag."), completion: LiveCompletion.tags) var tag: String?
    @Option(help: .value("text", "Only jobs with a label that contains this text.")) var label: String?
}

/// The jobs that a verb is about, as the command line names them.
struct JobIDRanges: ParsableArguments {
    @Flag(help: "All of your jobs.") var all = false

    @Argument(
        help: .value("id", "The ids of the jobs, or ranges of ids, such as 3-9."), completion: LiveCompletion.jobs)
    var ids: [IDRange] = []

    /// The jobs with these ids, if there are any, and those conditions.
    func selection(_ filter: JobClient.Filter) throws -> JobClient.Selection {
        guard let first = ids.first else {
            guard all || filter != JobClient.Filter(owner: filter.owner) else {
                throw ValidationError(
                    "Name the jobs: by ids (12 13), ranges (3-9) or conditions (--state failed); all are --all.")
            }
            return .matching(filter)
        }
        if all { throw ValidationError("Use either --all or ids of jobs, not both.") }
        if ids.count == 1, first.ids.lowerBound < first.ids.upperBound || filter != JobClient.Filter() {
            var filter = filter
            filter.ids = first.ids
            return .matching(filter)
        }
        guard filter == JobClient.Filter() else {
            throw ValidationError("Conditions go with one range of ids at most, such as 3-9.")
        }
        var named: [Int64] = []
        for range in ids.map(\.ids) {
            guard range.upperBound - range.lowerBound < Int64(Self.most - named.count) else {
                throw ValidationError(
                    "These are more than \(Self.most) jobs; use one range, or conditions such as --tag and --since.")
            }
            named += range
        }
        var seen: Set<Int64> = []
        return .jobs(named.filter { seen.insert($0).inserted })
    }

    private static let most = 10_000
}

/// The jobs that a verb is about: named by ids or ranges, or all that match conditions.
struct JobSelection: ParsableArguments {
    @OptionGroup(title: "Conditions") var names: NameConditions
    @OptionGroup(title: "Conditions") var conditions: JobConditions
    @OptionGroup var ranges: JobIDRanges

    func validate() throws { _ = try jobs }

    var jobs: JobClient.Selection {
        get throws { try ranges.selection(conditions.filter(queue: names.queue, tag: names.tag, label: names.label)) }
    }
}
