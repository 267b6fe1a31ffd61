import ArgumentParser
import JobClient

/// Shows what the daemon does.
struct StatsCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Show how many jobs the daemon has, and what it has done.",
        discussion: """
            Example: deferctl stats --json
            """)

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let answer = try await invocation.withDaemon { try await $0.stats() }
        if invocation.writesJSON {
            try invocation.console.line(answer)
        } else {
            try invocation.console.lines(Sheet.lines(answer, width: invocation.console.width))
        }
        return .ok
    }
}
