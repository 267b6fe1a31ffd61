import ArgumentParser
import JobClient
import JobProtocol

package enum Deferctl {
    package static func main() async -> Never {
        do {
            try ArgumentBytes.refuseOthers()
            try UnknownVerb.refuse(CommandLine.arguments.dropFirst())
            var command = try await DeferctlCommand.asyncParseAsRoot()
            if var verb = command as? any AsyncParsableCommand {
                try await verb.run()
            } else {
                try command.run()
            }
        } catch let failure as CommandFailure {
            end(failure)
        } catch let error as JobClientError {
            end(CommandFailure(error))
        } catch {
            end(error)
        }
        DeferctlCommand.exit()
    }

    private static func end(_ failure: CommandFailure) -> Never {
        Console().say(failure.message.sanitized)
        DeferctlCommand.exit(withError: ExitCode(failure.status.rawValue))
    }

    /// Ends with help, the version, the exit status of a verb, or a usage error, which repeats the user's input.
    private static func end(_ error: any Error) -> Never {
        let status = DeferctlCommand.exitCode(for: error)
        let text = DeferctlCommand.fullMessage(for: error)
        guard !status.isSuccess, !text.isEmpty else { DeferctlCommand.exit(withError: error) }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { String($0).sanitized + "\n" }
        try? FileOutput.standardError.write(lines.joined())
        DeferctlCommand.exit(withError: status)
    }
}

struct DeferctlCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "deferctl", abstract: "Submit jobs to deferd, follow them and inspect them.",
        discussion: """
            Data goes to standard output; progress and messages go to standard error.

            Exit status: 0 done, 1 the job failed, 2 it was cancelled, 64 wrong usage, 65 bad data or no such job, \
            69 the daemon cannot be reached, 70 a bug, 74 the output cannot be written, 75 try again later or \
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
            CommandGroup(name: "Following", subcommands: [WatchCommand.self, WaitCommand.self, TopCommand.self]),
            CommandGroup(
                name: "Looking",
                subcommands: [
                    ListCommand.self, ShowCommand.self, OutputCommand.self, ResultCommand.self, ExplainCommand.self,
                ]),
            CommandGroup(
                name: "Changing",
                subcommands: [
                    CancelCommand.self, RetryCommand.self, RemoveCommand.self, HoldCommand.self, ReleaseCommand.self,
                    SetCommand.self,
                ]),
            CommandGroup(
                name: "The daemon",
                subcommands: [
                    QueueCommand.self, InfoCommand.self, StatsCommand.self, UsageCommand.self, DoctorCommand.self,
                    BackupCommand.self,
                ]),
        ])

    /// All verbs by name, each with the verbs of its own.
    static let verbs: [String: [String]] = configuration.groupedSubcommands.flatMap(\.subcommands)
        .reduce(into: ["help": []]) { verbs, verb in
            verbs[verb.configuration.commandName ?? ""] = verb.configuration.subcommands.compactMap {
                $0.configuration.commandName
            }
        }

    @OptionGroup var global: GlobalOptions
}
