import ArgumentParser
import JobClient
import JobModel

/// The verbs of schedules.
struct ScheduleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schedule", abstract: "Have jobs submitted at certain times, as cron does.",
        discussion: "Example: deferctl schedule add nightly --calendar \"0 6 * * *\" job.json",
        subcommands: [
            ScheduleAddCommand.self, ScheduleListCommand.self, ScheduleShowCommand.self, ScheduleRemoveCommand.self,
            ScheduleRunCommand.self, ScheduleSuspendCommand.self, ScheduleResumeCommand.self,
        ],
        defaultSubcommand: ScheduleListCommand.self)
}

/// Which schedule a verb is for.
struct ScheduleName: ParsableArguments {
    @Option(help: .value("uid", "The schedule of this user; for administrators.")) var owner: UInt32?
    @Argument(help: .value("name", "The schedule's name."), completion: LiveCompletion.schedules) var name: String
}

/// Lists the schedules.
struct ScheduleListCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List your schedules, or everybody's if you are an administrator.",
        discussion: """
            NEXT is when the next job is submitted, in UTC whatever the zone of its times; LAST what became of the one before.

            Example: deferctl schedule list
            """)

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try invocation.show(schedules: try await invocation.withDaemon { try await $0.schedules() })
    }
}

/// Shows a schedule with its spec.
struct ScheduleShowCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show a schedule with the spec of its jobs.",
        discussion: "Example: deferctl schedule show nightly")

    @OptionGroup var global: GlobalOptions
    @OptionGroup var schedule: ScheduleName

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.showSheet { try await $0.schedule(schedule.name, owner: schedule.owner) }
    }
}

/// Removes a schedule.
struct ScheduleRemoveCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove a schedule.",
        discussion: """
            The jobs that it submitted stay.

            Example: deferctl schedule remove nightly
            """)

    @OptionGroup var global: GlobalOptions
    @OptionGroup var schedule: ScheduleName

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.withDaemon { try await $0.removeSchedule(schedule.name, owner: schedule.owner) }
        try invocation.show(
            ["schedule": schedule.name.json, "removed": true], as: "\(schedule.name.sanitized) removed")
        return .ok
    }
}

/// Submits a schedule's job now.
struct ScheduleRunCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Submit a schedule's job now, beside its times, and print the job's id.",
        discussion: "Example: deferctl watch $(deferctl schedule run nightly)")

    @OptionGroup var global: GlobalOptions
    @OptionGroup var schedule: ScheduleName

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let job = try await invocation.withDaemon { try await $0.runSchedule(schedule.name, owner: schedule.owner) }
        try invocation.show(["job": job.json], as: String(job))
        return .ok
    }
}

/// Suspends a schedule.
struct ScheduleSuspendCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspend", abstract: "Let the times of a schedule pass without a job.",
        discussion: "Example: deferctl schedule suspend nightly")

    @OptionGroup var global: GlobalOptions
    @OptionGroup var schedule: ScheduleName

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.setSuspended(true, schedule)
    }
}

/// Lets a suspended schedule go on.
struct ScheduleResumeCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Let a suspended schedule go on.",
        discussion: """
            The times that passed meanwhile get no job.

            Example: deferctl schedule resume nightly
            """)

    @OptionGroup var global: GlobalOptions
    @OptionGroup var schedule: ScheduleName

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.setSuspended(false, schedule)
    }
}

extension Invocation {
    fileprivate func setSuspended(_ isSuspended: Bool, _ schedule: ScheduleName) async throws -> ExitStatus {
        let answer = try await withDaemon {
            try await $0.setSchedule(schedule.name, isSuspended: isSuspended, owner: schedule.owner)
        }
        return try show(schedules: [answer])
    }

    func show(schedules: [JSON]) throws -> ExitStatus {
        try show(schedules, as: ScheduleTable.lines(schedules, console.format))
        return .ok
    }
}

/// Schedules as rows of a table.
enum ScheduleTable {
    static func lines(_ schedules: [JSON], _ format: TextFormat = TextFormat()) -> [String] {
        let hasOwners = Set(schedules.compactMap { $0["owner"]?.int }).count > 1
        var table = Table(
            (hasOwners ? [.number("OWNER")] : []) + [
                Table.Column("SCHEDULE", cut: .end, least: 8), Table.Column("TIMES", cut: .middle, least: 9),
                Table.Column("ZONE", cut: .end, least: 6, rank: 2), Table.Column("NEXT (UTC)"),
                Table.Column("LAST", rank: 1), .number("JOB", rank: 3), .number("SUBMITTED", rank: 4),
                .number("SKIPPED", rank: 5),
            ])
        for schedule in schedules {
            let last = schedule["last"]
            let state = last?["state"]?.string ?? ""
            let next: StyledText =
                if schedule["suspended"]?.bool == true {
                    StyledText("suspended", TextStyle(state: "suspended"))
                } else {
                    StyledText(schedule.time("next").map(Quantities.time) ?? "never")
                }
            table.append(
                (hasOwners ? [StyledText(schedule.number("owner"))] : []) + [
                    StyledText(schedule.text("schedule") ?? "?"), StyledText(times(schedule)),
                    StyledText(schedule.text("zone") ?? ""), next,
                    StyledText(state.sanitized, TextStyle(state: state)), StyledText(last?.number("job") ?? ""),
                    StyledText(schedule.number("submitted")), StyledText(schedule.number("skipped")),
                ])
        }
        return table.lines(format)
    }

    /// When it submits, in a few words.
    static func times(_ schedule: JSON) -> String {
        if let calendar = schedule.text("calendar") { return calendar }
        guard let every = schedule["every"]?.double else { return "?" }
        // No more than was asked for: "1 s", not "1.0 s", and "1 min", not "1 min 00 s".
        if let whole = Int(exactly: every), whole < 60 { return "every \(whole) s" }
        let span = Quantities.span(every)
        let empty = [" 00 s", " 00 min", " 0 h"].first { span.hasSuffix($0) } ?? ""
        return "every \(span.dropLast(empty.count))"
    }
}
