import ArgumentParser
import JobClient
import JobModel
import JobProtocol

package enum Deferctl {
    package static func main() async -> Never {
        do {
            try refuseOtherBytes()
            try UnknownVerb.refuse(CommandLine.arguments.dropFirst())
            let arguments = UnknownVerb.reordered(Array(CommandLine.arguments.dropFirst()))
            var command = try await DeferctlCommand.asyncParseAsRoot(arguments)
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

    /// Refuses arguments that are not UTF-8: Swift's strings would replace other bytes, and so name another file.
    private static func refuseOtherBytes() throws(CommandFailure) {
        let arguments = UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc)).dropFirst()
        for case let argument? in arguments where String(validatingCString: argument) == nil {
            throw CommandFailure.notUTF8(
                "The argument", argument,
                "rename what it names, or have a shell find it, such as: deferctl run sh -c 'cat caf?'")
        }
    }

    private static func end(_ failure: CommandFailure) -> Never {
        Console().say(failure.message.sanitized)
        DeferctlCommand.exit(withError: failure.status)
    }

    /// Ends with help, the version, the exit status of a verb, or a usage error, which repeats the user's input.
    private static func end(_ error: any Error) -> Never {
        let status = DeferctlCommand.exitCode(for: error)
        let text = DeferctlCommand.fullMessage(for: error)
        if text.isEmpty { DeferctlCommand.exit(withError: status) }
        if status == .usage, let failure = UnknownVerb.option(in: CommandLine.arguments.dropFirst()) { end(failure) }
        if status.isSuccess {
            do { try FileOutput.standardOutput.write(text + "\n") } catch { end(error) }
            DeferctlCommand.exit()
        }
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
                    QueueCommand.self, InfoCommand.self, StatsCommand.self, UsageCommand.self, NodesCommand.self,
                    DoctorCommand.self, BackupCommand.self,
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

/// The check of the verbs and options on the command line, because the parser takes a misspelt verb for an argument, and
/// reports wrong arguments before misspelt options; and their order.
enum UnknownVerb {
    /// The options of every verb, with the number of their words.
    private static let lengths = ["--socket": 2, "--color": 2, "--json": 1, "--utc": 1]

    /// The words from the verb on; nil if an option that not every verb has comes before it.
    private static func verbAndRest(of arguments: [String]) -> ArraySlice<String>? {
        var words = arguments[...]
        while let word = words.first, word.hasPrefix("-") {
            guard let length = word.contains("=") ? 1 : lengths[word] else { return nil }
            words = words.dropFirst(length)
        }
        return words
    }

    /// Moves the options of every verb from behind an argument "run" to the front: the parser takes such an argument for
    /// the verb, and does not find them there.
    static func reordered(_ arguments: [String]) -> [String] {
        guard let words = verbAndRest(of: arguments), words.first != "run",
            let run = words.prefix(while: { $0 != "--" }).firstIndex(of: "run")
        else { return arguments }
        var (options, others, rest) = ([String](), arguments[...run], arguments[(run + 1)...])
        while let word = rest.first, word != "--" {
            let name = String(word.prefix { $0 != "=" })
            let count =
                switch lengths[name] ?? 0 {
                case 1 where name == word, 2 where word.count > name.count + 1: 1
                case 2 where name == word && rest.dropFirst().first?.hasPrefix("-") == false: 2
                // The parser reports an option without a value where it is.
                default: 0
                }
            if count > 0 { options += rest.prefix(count) } else { others.append(word) }
            rest = rest.dropFirst(max(1, count))
        }
        return options + others + rest
    }

    /// Throws if the verb, or the second verb of a verb that has verbs of its own, is unknown; suggests the nearest one.
    static func refuse(_ arguments: some Sequence<String>) throws(CommandFailure) {
        guard var words = verbAndRest(of: Array(arguments)) else { return }
        // For an unknown verb, the parser's own "help" would show the help of the program.
        if words.first == "help" { words.removeFirst() }
        guard let word = words.first else { return }
        guard let verbs = DeferctlCommand.verbs[word] else {
            throw unknown(word, among: DeferctlCommand.verbs.keys.sorted(), of: "deferctl")
        }
        let second = words.dropFirst().first ?? "-"
        if verbs.isEmpty || second.hasPrefix("-") || verbs.contains(second) { return }
        throw unknown(second, among: verbs, of: "deferctl \(word)")
    }

    /// The failure of the first option that the verb on the command line does not have; nil without one.
    static func option(in arguments: some Sequence<String>) -> CommandFailure? {
        let words = arguments.prefix { $0 != "--" }
        var (command, path): (any ParsableCommand.Type, String) = (DeferctlCommand.self, "deferctl")
        for word in words {
            let verb = command.configuration.subcommands.first { $0.configuration.commandName == word }
            if let verb { (command, path) = (verb, "\(path) \(word)") }
        }
        // Words behind a program belong to it.
        if command == RunCommand.self { return nil }
        let help = DeferctlCommand.helpMessage(for: command, columns: 1000)
        let known = Set(help.split { !$0.isLetter && $0 != "-" }.map(String.init).filter { $0.hasPrefix("--") })
        let names = words.filter { $0.hasPrefix("--") }.map { String($0.prefix { $0 != "=" }) }
        guard let name = names.first(where: { !known.contains($0) }) else { return nil }
        let hint = name.nearest(among: known.sorted()).map { " Did you mean \($0)?" } ?? ""
        return CommandFailure(.usage, "There is no option \(name) of \(path).\(hint) See all with: \(path) --help")
    }

    private static func unknown(_ word: String, among verbs: [String], of command: String) -> CommandFailure {
        let hint = word.nearest(among: verbs).map { " Did you mean \($0)?" } ?? ""
        return CommandFailure(
            .usage,
            "There is no verb \"\(word.cut(to: 60, mark: "..."))\" of \(command).\(hint) See all with: \(command) --help"
        )
    }
}
