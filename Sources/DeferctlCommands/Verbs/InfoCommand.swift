import ArgumentParser
import JobClient

/// Shows what the daemon is.
struct InfoCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "info",
        abstract: "Show the daemon's version, limits and sources, and who it takes you for.",
        discussion: """
            Example: deferctl info --json
            """)

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let answer = try await invocation.withDaemon { try await $0.info() }
        if invocation.writesJSON {
            try invocation.console.line(answer)
        } else {
            try invocation.console.lines(Sheet.lines(answer, width: invocation.console.width))
        }
        return .ok
    }
}
