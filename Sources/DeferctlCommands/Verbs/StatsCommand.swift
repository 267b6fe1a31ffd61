import ArgumentParser
import JobClient
import JobModel

/// Shows what the daemon does.
struct StatsCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Show how many jobs the daemon has, and what it has done.",
        discussion: """
            With --openmetrics administrators get the daemon's metrics as monitoring reads them, as of the node \
            exporter's textfile collector.

            Example: deferctl stats --openmetrics --output /var/lib/prometheus/node-exporter/deferd.prom
            """)

    @Flag(name: .long, help: "Print metrics in the text format of OpenMetrics.")
    var openmetrics = false

    @Option(
        name: [.long, .customShort("o")],
        help: ArgumentHelp(
            "Replace this file by the metrics, as a whole, instead of printing them.", valueName: "file"),
        completion: .file())
    var output: String?

    @OptionGroup var global: GlobalOptions

    func validate() throws {
        if output != nil, !openmetrics { throw ValidationError("--output goes with --openmetrics only.") }
        if openmetrics, global.json { throw ValidationError("Give either --openmetrics or --json, not both.") }
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        if openmetrics {
            let text = OpenMetricsText.text(try await invocation.withDaemon { try await $0.metrics() })
            if let output { try ReplacedFile.write(text, to: output) } else { try write(text, invocation.console) }
            return .ok
        }
        let answer = try await invocation.withDaemon { try await $0.stats() }
        if invocation.writesJSON {
            try invocation.console.line(answer)
        } else {
            try invocation.console.lines(Sheet.lines(answer, width: invocation.console.width))
        }
        return .ok
    }

    /// Names of queues stand in it: on a terminal they stay text.
    private func write(_ text: String, _ console: Console) throws(CommandFailure) {
        guard console.showsData else { return try console.data.write(text) }
        var filter = TerminalFilter()
        try console.data.write(filter.filter(Array(text.utf8)))
    }
}
