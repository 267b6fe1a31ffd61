import ArgumentParser
import JobClient

/// The program.
package enum Deferctl {
    /// Runs the program with the arguments of this process, and ends it.
    package static func main() async -> Never {
        do {
            var command = try DeferctlCommand.parseAsRoot()
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
            // Help, the version, a usage error, or a verb's exit status.
            DeferctlCommand.exit(withError: error)
        }
        DeferctlCommand.exit()
    }

    private static func end(_ failure: CommandFailure) -> Never {
        Console().say(failure.message.sanitized)
        DeferctlCommand.exit(withError: ExitCode(failure.status.rawValue))
    }
}
