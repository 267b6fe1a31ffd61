import ArgumentParser
import FoundationEssentials
import JobClient
import JobModel

struct TopCommand: DaemonCommand {
    static let configuration = verb(
        "top", "Show live what the daemon does: its queues, running jobs, and rates.", example: "deferctl top",
        """
        On a terminal, it fills the screen until you press q or Ctrl-C, and other keys cancel, retry and hold jobs and \
        show their output; ? lists them. Elsewhere, it prints one sample; with --json, \
        it prints a sample per line until Ctrl-C, or as many as --count says.
        """)

    @Option(
        help: .value("seconds", "Seconds between two samples, at least 0.2."),
        transform: { text in
            guard let value = Double(text), (0.2...86_400).contains(value) else {
                throw ValidationError("it must be a number of seconds, 0.2 to 86400.")
            }
            return value
        })
    var interval = 1.0

    @Option(
        help: .value("number", "Print this many samples and end; never fill the screen."), transform: whole(1...Int.max)
    )
    var count: Int?

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let console = invocation.console
        let isScreen = console.showsData && FileOutput.hasCursor(ProcessInfo.processInfo.environment)
        if isScreen, !invocation.writesJSON, count == nil {
            try await TopScreen(invocation: invocation, interval: .seconds(interval)).run()
            return .ok
        }
        let interruption = Interruption(farewell: "Stopped. Look again with: deferctl top")
        let looks = count ?? (invocation.writesJSON ? Int.max : 1)
        return try await interruption.run { [interval] in
            try await invocation.withDaemon { client in
                let info = try await client.info()
                var history = TopHistory()
                for look in 1...looks {
                    let sample = try await TopSample(from: client, rows: TopSample.mostJobs)
                    history.append(sample)
                    let page = TopPage(format: console.format)
                        .lines(TopView(history: history, info: info), TopControl(), now: .now, size: nil)
                    try invocation.show([sample.json], as: (look == 1 ? [] : [""]) + page)
                    if look < looks { try await Task.sleep(for: .seconds(interval)) }
                }
                return .ok
            }
        }
    }
}
