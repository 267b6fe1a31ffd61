import ArgumentParser
import JobClient
import JobModel

struct ChangeOptions: ParsableArguments {
    @Flag(help: "Only say how many jobs would be changed.") var dryRun = false
    @OptionGroup var selection: JobSelection
}

extension Invocation {
    /// Changes jobs in one call. Of a single job, the new state is printed, or `word` if it says more; of several, their number.
    fileprivate func change(
        _ selection: JobClient.Selection, _ change: JobClient.Change, _ word: String, isDryRun: Bool
    ) async throws -> ExitStatus {
        try await withDaemon { client in
            if case .jobs(let ids) = selection, ids.count == 1, !isDryRun {
                let changed = try await client.change(ids[0], change)
                let state = word == SetCommand.word ? word : changed?.state.sanitized ?? word
                return try show(changed?.json ?? ["job": ids[0].json, word: true], as: "\(ids[0]) \(state)")
            }
            let answer = try await client.change(selection, change, dryRun: isDryRun)
            let (count, skipped) = (answer["count"]?.int ?? 0, answer["skipped"]?.int ?? 0)
            try show(
                answer,
                as: "\(count) \(isDryRun ? "would be " : "")\(word)" + (skipped > 0 ? ", \(skipped) skipped" : ""))
            if case .jobs = selection, skipped > 0 {
                console.say("A job was skipped if it does not exist, or if its state does not allow this.")
                return .badData
            }
            if count == 0, skipped == 0 { console.say("No job matches; see your jobs with: \(socket.command) list") }
            return .ok
        }
    }
}

protocol ChangeCommand: DaemonCommand {
    /// What the verb has done to the jobs.
    static var word: String { get }
    var change: JobClient.Change { get }
    var options: ChangeOptions { get }
}

extension ChangeCommand {
    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.change(try options.selection.jobs, change, Self.word, isDryRun: options.dryRun)
    }
}

struct CancelCommand: ChangeCommand {
    static let word = "cancelled"
    static let configuration = verb(
        "cancel", "Cancel jobs.", example: "deferctl cancel --tag night --state queued",
        """
        A job with \"finally\" links ends after those links, and a job that runs a program ends after the program, \
        at most five seconds later; wait for it with: deferctl wait
        """)

    @OptionGroup var global: GlobalOptions
    @OptionGroup var options: ChangeOptions
    var change: JobClient.Change { .cancel }
}

struct RetryCommand: ChangeCommand {
    static let word = "retried"
    static let configuration = verb(
        "retry", "Run failed or cancelled jobs again.", example: "deferctl retry --state failed --since 1d",
        "A download continues where it stopped. With --from start, jobs that succeeded run again too.")

    enum Start: String, ExpressibleByArgument, CaseIterable { case failed, start }

    @Option(help: .value("point", "Where to continue: at the link that failed, or at the start."))
    var from = Start.failed
    @OptionGroup var global: GlobalOptions
    @OptionGroup var options: ChangeOptions
    var change: JobClient.Change { .retry(from: from == .start ? .start : .failed) }
}

struct RemoveCommand: ChangeCommand {
    static let word = "removed"
    static let configuration = verb(
        "remove", "Remove finished jobs with their results and children; downloaded files stay.",
        example: "deferctl remove --state succeeded --before 7d")

    @OptionGroup var global: GlobalOptions
    @OptionGroup var options: ChangeOptions
    var change: JobClient.Change { .remove }
}

struct HoldCommand: ChangeCommand {
    static let word = "held"
    static let configuration = verb(
        "hold", "Keep jobs from running until they are released.", example: "deferctl hold 3-9",
        """
        A running download stops, and continues after its release where it stopped. Other running jobs cannot be held.
        """)

    @OptionGroup var global: GlobalOptions
    @OptionGroup var options: ChangeOptions
    var change: JobClient.Change { .hold }
}

struct ReleaseCommand: ChangeCommand {
    static let word = "released"
    static let configuration = verb(
        "release", "Let held jobs run, and scheduled jobs run now.", example: "deferctl release 3-9")

    @OptionGroup var global: GlobalOptions
    @OptionGroup var options: ChangeOptions
    var change: JobClient.Change { .release }
}

struct SetCommand: DaemonCommand {
    static let word = "changed"
    static let configuration = verb(
        "set", "Change what was said when jobs were submitted.", example: "deferctl set 12 --priority 5 --delay none",
        """
        The value none takes a setting away, as does an empty --label or --tag. --rate, --label, --tag, --deadline and \
        --notify also change running jobs. --delay and --deadline count from now.
        """)

    @Option(parsing: .unconditional, help: .value("number", "-1000 to 1000.")) var priority: Int?
    @Option(help: .value("name", "The queue."), completion: LiveCompletion.queues) var queue: String?
    @Option(help: .value("duration", "The time until the job may start: 90, 10m, 2h.")) var delay:
        Revocable<WrittenDuration>?
    @Option(help: .value("time", "When the job may start: 06:00, 'tomorrow 9:00', 90s."), transform: nextTime)
    var at: Revocable<WrittenTime>?

    @Option(help: .value("duration", "The time in which the whole job must end.")) var deadline:
        Revocable<WrittenDuration>?
    @Option(help: .value("bytes", "Bytes per second of a download, such as 500k.")) var rate: Revocable<ByteRate>?
    @Option(help: .value("text", "The name of the job in lists and progress.")) var label: String?

    @Option(
        parsing: .singleValue, help: .value("text", "A tag, instead of those before; may be repeated."),
        completion: LiveCompletion.tags)
    var tag: [String] = []

    @Flag(inversion: .prefixedNo, help: "Whether to tell of the job's end, as hooks.finished says.") var notify: Bool?
    @Flag(help: "Only say how many jobs would be changed.") var dryRun = false

    @Option(help: .value("name", "Only jobs of this queue."), completion: LiveCompletion.queues) var inQueue: String?
    @Option(help: .value("text", "Only jobs with this tag."), completion: LiveCompletion.tags) var withTag: String?
    @Option(help: .value("text", "Only jobs with a label that contains this text.")) var withLabel: String?
    @OptionGroup var conditions: JobConditions
    @OptionGroup var global: GlobalOptions
    @OptionGroup var ranges: JobIDRanges

    var members: JSONObject {
        [
            "priority": priority?.json, "queue": queue?.json, "delay": delay?.json { $0.seconds.json },
            "notBefore": at?.json { $0.future.json }, "deadline": deadline?.json { $0.seconds.json },
            "rate": rate?.json { $0.bytes.json }, "label": label.map { $0.isEmpty ? .null : $0.json },
            "tags": tag.isEmpty ? JSON?.none : tag == [""] ? .null : tag.json, "notify": notify?.json,
        ]
    }

    private var jobs: JobClient.Selection {
        get throws { try ranges.selection(conditions.filter(queue: inQueue, tag: withTag, label: withLabel)) }
    }

    func validate() throws {
        if delay != nil, at != nil { throw ValidationError("Use either --delay or --at, not both.") }
        guard !members.members.isEmpty else { throw ValidationError("Say what to change, such as --priority 5.") }
        _ = try jobs
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.change(try jobs, .set(members), Self.word, isDryRun: dryRun)
    }
}
