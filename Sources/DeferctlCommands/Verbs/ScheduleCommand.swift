import ArgumentParser
import JobClient
import JobModel

struct ScheduleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schedule", abstract: "Submit jobs at certain times, as cron does.",
        discussion: "Example: deferctl schedule add nightly --calendar \"0 6 * * *\" job.json",
        subcommands: [
            ScheduleAddCommand.self, ScheduleListCommand.self, ScheduleShowCommand.self, ScheduleRemoveCommand.self,
            ScheduleRunCommand.self, ScheduleSuspendCommand.self, ScheduleResumeCommand.self,
        ],
        defaultSubcommand: ScheduleListCommand.self)
}

struct ScheduleName: ParsableArguments {
    @Option(help: .value("uid", "The owner of the schedule; only for administrators.")) var owner: UInt32?
    @Argument(help: .value("name", "The schedule's name."), completion: LiveCompletion.schedules) var name: String
}

struct ScheduleListCommand: DaemonCommand {
    static let configuration = verb(
        "list", "List your schedules; administrators see all users' schedules.", example: "deferctl schedule list",
        """
        NEXT is the time of the next job, always in UTC; LAST is the state of the previous job.
        """)

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
        """
        Times that passed meanwhile get no job.
        """)

    @OptionGroup var global: GlobalOptions
    @OptionGroup var schedule: ScheduleName

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.showSchedule {
            try await $0.setSchedule(schedule.name, isSuspended: false, owner: schedule.owner)
        }
    }
}

extension Invocation {
    /// Changes a schedule, and shows it.
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
            .init("NEXT (UTC)") { schedule in
                if schedule["suspended"]?.bool == true { return StyledText(state: "suspended") }
                return StyledText(schedule.time("next").map(Quantities.time) ?? "never")
            },
            .init("LAST", rank: 1) { StyledText(state: $0["last"]?["state"]?.string ?? "") },
            .number("JOB", rank: 3) { $0["last"]?.number("job") ?? "" },
            .number("SUBMITTED", rank: 4) { $0.number("submitted") },
            .number("SKIPPED", rank: 5) { $0.number("skipped") },
        ]
        return Table((hasOwners ? [.number("OWNER") { $0.number("owner") }] : []) + columns).lines(schedules, format)
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
