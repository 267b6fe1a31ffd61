import ArgumentParser
import FoundationEssentials
import JobClient
import JobModel

/// Shows live what the daemon does.
struct TopCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "top", abstract: "Show live what the daemon does: its queues, the jobs that run, and rates.",
        discussion: """
            On a terminal it has the screen to itself until q or Ctrl-C. Elsewhere it looks once and prints what it \
            saw; with --json each look is a line, until Ctrl-C or --count.

            Example: deferctl top
            """)

    @Option(help: .value("seconds", "Seconds between two looks, at least 0.2.")) var interval = 1.0
    @Option(help: .value("number", "Print so many looks and end; never takes the screen over.")) var count: Int?
    @OptionGroup var global: GlobalOptions

    func validate() throws {
        guard interval.isFinite, (0.2...86_400).contains(interval) else {
            throw ValidationError("--interval must be a number of seconds, 0.2 to 86400.")
        }
        if let count, count < 1 { throw ValidationError("--count must be at least 1.") }
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let console = invocation.console
        let isScreen = console.showsData && FileOutput.hasCursor(ProcessInfo.processInfo.environment)
        if isScreen, !invocation.writesJSON, count == nil {
            try await TopScreen(invocation: invocation, interval: .seconds(interval)).run()
            return .ok
        }
        let interruption = Interruption(farewell: "Stopped. Look again with: deferctl top")
        let looks = count ?? (invocation.writesJSON ? Int.max : 1)
        let interval = interval
        try await interruption.run {
            try await invocation.withDaemon { client in
                let info = try await client.info()
                var history = TopHistory()
                for look in 1...looks {
                    let sample = try await TopSample(from: client, rows: TopSample.mostJobs)
                    history.append(sample)
                    let page = TopPage(format: console.format)
                        .lines(history, info: info, message: "", now: .now, size: nil)
                    try invocation.show([sample.json], as: (look == 1 ? [] : [""]) + page)
                    if look < looks { try await Task.sleep(for: .seconds(interval)) }
                }
            }
        }
        return .ok
    }
}
