import ArgumentParser
import JobClient
import JobModel

struct ScheduleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schedule", abstract: "Submit jobs at certain times, as cron does.",
        discussion: "Example: deferctl schedule add nightly --daily -- ./backup.sh",
        subcommands: [
            ScheduleAddCommand.self, ScheduleListCommand.self, ScheduleShowCommand.self, ScheduleRemoveCommand.self,
            ScheduleRunCommand.self, ScheduleSuspendCommand.self, ScheduleResumeCommand.self,
        ],
        defaultSubcommand: ScheduleListCommand.self)
}

struct ScheduleName: ParsableArguments {
    @Option(help: .value("user", "The owner of the schedule; only for administrators."), transform: Accounts.uid)
    var owner: UInt32?

    @Argument(help: .value("name", "The schedule's name."), completion: LiveCompletion.schedules) var name: String
}

struct ScheduleAddCommand: DaemonCommand {
    static let configuration = verb(
        "add", "Create a schedule, or replace the one with that name.",
        example: "deferctl schedule add backup --calendar '0 6 * * mon-fri' -- ./backup.sh --all",
        """
        A schedule runs a command, which follows --, or submits the job spec in the file SPEC, which - reads from \
        standard input; an argument that begins with { is the spec itself. A spec's strings may contain \
        {{schedule/name}} and {{schedule/time}}. The command means the same as for the verb run: the name of a program in \
        the daemon's configuration, or else, in a daemon of your own, a command that runs in this directory, with this \
        environment.

        --calendar takes the five fields of crontab(5) (minute, hour, day of month, month, day of week), or \
        @hourly, @daily (also @midnight), @weekly, @monthly or @yearly (also @annually), or @reboot, each start of the \
        machine.
        """)

    @Option(help: .value("fields", "Submit at these times.")) var calendar: String?
    @Flag(help: "Submit at midnight; the same as --calendar @daily.") var daily = false
    @Option(help: .value("duration", "Submit each time that this much time has passed, from now on: 90, 10m, 2h."))
    var every: WrittenDuration?

    @Option(
        help: .value(
            "name",
            "The time zone of the calendar, such as Europe/Berlin (default: local, that of TZ or of the machine)."))
    var zone: String?

    @Option(help: .value("which", "For times that passed while no daemon ran: last (one job), none or all."))
    var catchUp: ScheduleCatchUp?

    @Option(help: .value("what", "If the previous job is not finished: skip or queue.")) var overlap: ScheduleOverlap?

    @Flag(help: "Create it suspended; see schedule resume.") var suspended = false
    @OptionGroup(title: "Surroundings of a command") var surroundings: CommandOptions
    @OptionGroup var global: GlobalOptions
    @Argument(help: "The schedule's name: letters, digits, dots, underscores and hyphens.") var name: String

    @Argument(help: .value("spec", "A job spec, or a file with one; - is standard input."), completion: .file())
    var spec: String?

    @Argument(parsing: .postTerminator, help: .value("command", "The command to run, behind --, and its arguments."))
    var line: [String] = []

    func validate() throws {
        guard [calendar != nil, daily, every != nil].filter(\.self).count == 1 else {
            throw ValidationError("Use one of --calendar, --daily and --every.")
        }
        guard zone == nil || every == nil else { throw ValidationError("--zone needs --calendar or --daily.") }
        guard spec == nil || line.isEmpty else {
            throw ValidationError("Give either a job spec or a command, not both.")
        }
        let hasSurroundings = surroundings.usesCleanEnvironment || !surroundings.variables.isEmpty
        if line.isEmpty, hasSurroundings || surroundings.namesDirectory {
            throw ValidationError("--env, --clean-env, --directory and --scratch need a command, which follows --.")
        }
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let written: JSON? = line.isEmpty ? try await writtenSpec(invocation) : JSON?.none
        let settings: JSONObject = [
            "catchUp": catchUp?.rawValue.json, "overlap": overlap?.rawValue.json,
            "suspended": suspended ? true : JSON?.none,
            "every": every?.seconds.json, "calendar": every == nil ? (calendar ?? "@daily").json : JSON?.none,
            "zone": try every == nil ? zoneName().json : JSON?.none,
        ]
        return try await invocation.showSchedule { client in
            func set(_ spec: JSON) async throws(JobClientError) -> JSON {
                var settings = settings
                settings["spec"] = spec
                return try await client.setSchedule(name, settings)
            }
            if let written { return try await set(written) }
            // Only commands run in a directory of the caller's choice.
            let isCommand = line.first?.contains("/") == true || surroundings.namesDirectory
            return try await client.send(
                isCommand ? JSON?.none : spec(source: surroundings.named(line)),
                orElse: { client throws(CommandFailure) in
                    let isOwn = await Surroundings.mayBeSent(to: client)
                    return spec(source: try surroundings.source(line, isOwn: isOwn, invocation.console))
                }, failing: { CommandFailure($0) }, set)
        }
    }

    private func zoneName() throws(CommandFailure) -> String {
        if let zone, zone != "local" { return zone }
        // As the program was started: --utc, which is about what is shown, has set TZ since.
        return try LocalZone.name(variable: Surroundings().environment["TZ"])
    }

    private func writtenSpec(_ invocation: Invocation) async throws -> JSON {
        var documents = SpecDocuments(
            argument: spec ?? "-", invocation, "a job spec from the terminal", help: "schedule add")
        let json = try await documents.next()?.spec.get()
        guard let json, try await documents.next() == nil else {
            throw CommandFailure(.badData, "A schedule has one job spec; put several jobs into a list.")
        }
        return json
    }

    /// The spec of a job that runs the command; its braces are no expressions.
    func spec(source: JSONObject) -> JSON {
        let label = TemplateText.escaped(line.joined(separator: " ")).shortened(to: 256)
        return ["source": TemplateText.escaped(.object(source)), "label": .string(label)]
    }
}

struct ScheduleListCommand: DaemonCommand {
    static let configuration = verb(
        "list", "List your schedules; administrators see all users' schedules.", example: "deferctl schedule list",
        "NEXT is the time of the next job; LAST is the state of the previous job.")

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let schedules = try await invocation.withDaemon { try await $0.schedules() }
        return try invocation.show(schedules, as: ScheduleTable.lines(schedules, invocation.console.format))
    }
}

struct ScheduleShowCommand: DaemonCommand {
    static let configuration = verb(
        "show", "Show a schedule with the spec of its jobs.", example: "deferctl schedule show nightly")

    @OptionGroup var global: GlobalOptions
    @OptionGroup var schedule: ScheduleName

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.showSheet { try await $0.schedule(schedule.name, owner: schedule.owner) }
    }
}

struct ScheduleRemoveCommand: DaemonCommand {
    static let configuration = verb(
        "remove", "Remove a schedule; its jobs stay.", example: "deferctl schedule remove nightly")

    @OptionGroup var global: GlobalOptions
    @OptionGroup var schedule: ScheduleName

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.withDaemon { try await $0.removeSchedule(schedule.name, owner: schedule.owner) }
        return try invocation.show(
            ["schedule": schedule.name.json, "removed": true], as: "\(schedule.name.sanitized) removed")
    }
}

struct ScheduleRunCommand: DaemonCommand {
    static let configuration = verb(
        "run", "Submit a schedule's job now, in addition to its times, and print the job's id.",
        example: "deferctl watch $(deferctl schedule run nightly)")

    @OptionGroup var global: GlobalOptions
    @OptionGroup var schedule: ScheduleName

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let job = try await invocation.withDaemon { try await $0.runSchedule(schedule.name, owner: schedule.owner) }
        return try invocation.show(["job": job.json], as: String(job))
    }
}

struct ScheduleSuspendCommand: DaemonCommand {
    static let configuration = verb(
        "suspend", "Stop a schedule from submitting jobs.", example: "deferctl schedule suspend nightly")

    @OptionGroup var global: GlobalOptions
    @OptionGroup var schedule: ScheduleName

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.showSchedule {
            try await $0.setSchedule(schedule.name, isSuspended: true, owner: schedule.owner)
        }
    }
}

struct ScheduleResumeCommand: DaemonCommand {
    static let configuration = verb(
        "resume", "Let a suspended schedule submit jobs again.", example: "deferctl schedule resume nightly",
        "Times that passed meanwhile get no job.")

    @OptionGroup var global: GlobalOptions
    @OptionGroup var schedule: ScheduleName

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.showSchedule {
            try await $0.setSchedule(schedule.name, isSuspended: false, owner: schedule.owner)
        }
    }
}

extension Invocation {
    func showSchedule(_ change: (JobClient) async throws -> JSON) async throws -> ExitStatus {
        let answer = try await withDaemon(change)
        return try show([answer], as: ScheduleTable.lines([answer], console.format))
    }
}

enum ScheduleTable {
    static func lines(_ schedules: [JSON], _ format: TextFormat = TextFormat()) -> [String] {
        let hasOwners = Set(schedules.compactMap { $0["owner"]?.int }).count > 1
        let columns: [Table<JSON>.Column] = [
            .init("SCHEDULE", cut: .end, least: 8) { $0.text("schedule") ?? "?" },
            .init("TIMES", cut: .middle, least: 9, text: times),
            .init("ZONE", cut: .end, least: 6, rank: 2) { $0.text("zone") ?? "" },
            .init("NEXT") { schedule in
                if schedule["suspended"]?.bool == true { return StyledText(state: "suspended") }
                if let next = schedule.time("next") { return StyledText(Quantities.time(next)) }
                return StyledText(schedule["calendar"] == "@reboot" ? "next boot" : "never")
            },
            .init("LAST", rank: 1) { StyledText(state: $0["last"]?["state"]?.string ?? "") },
            .number("JOB", rank: 3) { $0["last"]?.number("job") ?? "" },
            .number("SUBMITTED", of: "submitted", rank: 4), .number("SKIPPED", of: "skipped", rank: 5),
        ]
        return Table((hasOwners ? [.number("OWNER", of: "owner")] : []) + columns).lines(schedules, format)
    }

    /// The calendar or the interval, as it was set: "1 s", not "1.0 s", and "1 min", not "1 min 00 s".
    static func times(_ schedule: JSON) -> String {
        if let calendar = schedule.text("calendar") { return calendar }
        guard let every = schedule["every"]?.double else { return "?" }
        if let whole = Int(exactly: every), whole < 60 { return "every \(whole) s" }
        let span = Quantities.span(every)
        let empty = [" 00 s", " 00 min", " 0 h"].first { span.hasSuffix($0) } ?? ""
        return "every \(span.dropLast(empty.count))"
    }
}
