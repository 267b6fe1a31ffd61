import ArgumentParser
import JobClient
import JobModel

/// The verbs of schedules.
struct ScheduleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schedule",
        abstract: "Have jobs submitted at certain times, as cron does.",
        discussion: "Example: deferctl schedule add nightly --calendar \"0 6 * * *\" job.json",
        subcommands: [
            ScheduleAddCommand.self, ScheduleListCommand.self, ScheduleShowCommand.self, ScheduleRemoveCommand.self,
            ScheduleRunCommand.self, ScheduleSuspendCommand.self, ScheduleResumeCommand.self,
        ],
        defaultSubcommand: ScheduleListCommand.self)
}

/// Which schedule a verb is for.
struct ScheduleName: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp("The schedule of this user; for administrators.", valueName: "uid"))
    var owner: UInt32?

    @Argument(help: ArgumentHelp("The schedule's name.", valueName: "name"), completion: LiveCompletion.schedules)
    var name: String
}

extension Invocation {
    /// Shows schedules as rows, or as JSON lines.
    func show(schedules: [JSON]) throws {
        if writesJSON {
            for schedule in schedules { try console.line(schedule) }
        } else {
            try console.lines(
                ScheduleTable.lines(schedules, width: console.width, mark: console.cutMark, palette: console.palette))
        }
    }
}

/// Lists the schedules.
struct ScheduleListCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List your schedules, or everybody's if you are an administrator.",
        discussion: """
            NEXT is when the next job is submitted, in UTC whatever the zone of its times; LAST what became of the one before.

            Example: deferctl schedule list
            """)

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try invocation.show(schedules: try await invocation.withDaemon { try await $0.schedules() })
        return .ok
    }
}

/// Shows a schedule with its spec.
struct ScheduleShowCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show a schedule with the spec of its jobs.",
        discussion: "Example: deferctl schedule show nightly")

    @OptionGroup var global: GlobalOptions
    @OptionGroup var schedule: ScheduleName

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let answer = try await invocation.withDaemon { try await $0.schedule(schedule.name, owner: schedule.owner) }
        if invocation.writesJSON {
            try invocation.console.line(answer)
        } else {
            try invocation.console.lines(Sheet.lines(answer, width: invocation.console.width))
        }
        return .ok
    }
}

/// Removes a schedule.
struct ScheduleRemoveCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove a schedule.",
        discussion: """
            The jobs that it submitted stay.

            Example: deferctl schedule remove nightly
            """)

    @OptionGroup var global: GlobalOptions
    @OptionGroup var schedule: ScheduleName

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.withDaemon { try await $0.removeSchedule(schedule.name, owner: schedule.owner) }
        if invocation.writesJSON {
            try invocation.console.line(["schedule": .string(schedule.name), "removed": true])
        } else {
            try invocation.console.line("\(schedule.name.sanitized) removed")
        }
        return .ok
    }
}

/// Submits a schedule's job now.
struct ScheduleRunCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Submit a schedule's job now, beside its times, and print the job's id.",
        discussion: "Example: deferctl watch $(deferctl schedule run nightly)")

    @OptionGroup var global: GlobalOptions
    @OptionGroup var schedule: ScheduleName

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let job = try await invocation.withDaemon { try await $0.runSchedule(schedule.name, owner: schedule.owner) }
        if invocation.writesJSON {
            try invocation.console.line(["job": JSON(Int(job))])
        } else {
            try invocation.console.line(String(job))
        }
        return .ok
    }
}

/// Suspends a schedule.
struct ScheduleSuspendCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspend",
        abstract: "Let the times of a schedule pass without a job.",
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
        commandName: "resume",
        abstract: "Let a suspended schedule go on.",
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
        try show(schedules: [answer])
        return .ok
    }
}
