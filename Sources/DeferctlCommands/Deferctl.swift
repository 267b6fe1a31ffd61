import ArgumentParser
import JobClient

/// The program.
package enum Deferctl {
    /// Runs the program with the arguments of this process, and ends it.
    package static func main() async -> Never {
        do {
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

    /// Ends with help, the version, a verb's exit status, or a usage error, which repeats what was typed.
    private static func end(_ error: any Error) -> Never {
        let status = DeferctlCommand.exitCode(for: error)
        let text = DeferctlCommand.fullMessage(for: error)
        guard !status.isSuccess, !text.isEmpty else { DeferctlCommand.exit(withError: error) }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { String($0).sanitized + "\n" }
        try? FileOutput.standardError.write(lines.joined())
        DeferctlCommand.exit(withError: status)
    }
}
