import ArgumentParser
import JobProtocol

/// The program: its verbs and how it ends.
struct DeferctlCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "deferctl",
        abstract: "Give jobs to deferd, follow them and look at them.",
        discussion: """
            Data goes to standard output, progress and messages to standard error.

            Exit status: 0 done, 1 the job failed, 2 it was cancelled, 64 wrong usage, 65 bad data or no such job, \
            69 the daemon cannot be reached, 70 a defect, 74 the output cannot be written, 75 try again later or \
            detached by Ctrl-C, 77 not permitted, 78 wrong configuration.
            """,
        version: ProductVersion.current,
        groupedSubcommands: [
            CommandGroup(
                name: "Submitting",
                subcommands: [
                    FetchCommand.self, DownloadCommand.self, UploadCommand.self, JSONCommand.self, RunCommand.self,
                    SubmitCommand.self, ScheduleCommand.self,
                ]),
            CommandGroup(
                name: "Following",
                subcommands: [WatchCommand.self, WaitCommand.self, TopCommand.self]),
            CommandGroup(
                name: "Looking",
                subcommands: [ListCommand.self, ShowCommand.self, ResultCommand.self]),
            CommandGroup(
                name: "Changing",
                subcommands: [CancelCommand.self, RetryCommand.self, RemoveCommand.self]),
            CommandGroup(
                name: "The daemon",
                subcommands: [
                    QueuesCommand.self, SuspendCommand.self, ResumeCommand.self, InfoCommand.self, StatsCommand.self,
                    DoctorCommand.self, BackupCommand.self,
                ]),
        ])

    /// The names of all verbs.
    static var verbs: [String] {
        configuration.groupedSubcommands.flatMap { group in
            group.subcommands.compactMap { $0.configuration.commandName }
        } + ["help"]
    }

    @OptionGroup var global: GlobalOptions
}
