import ArgumentParser
import JobClient
import JobModel

/// Shows what the daemon is.
struct InfoCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "info", abstract: "Show the daemon's version, limits and sources, and who it takes you for.",
        discussion: "Example: deferctl info --json")

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.showSheet { try await $0.info() }
    }
}

/// Shows what the daemon does.
struct StatsCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats", abstract: "Show how many jobs the daemon has, and what it has done.",
        discussion: """
            With --openmetrics administrators get the daemon's metrics as monitoring reads them, as of the node \
            exporter's textfile collector.

            Example: deferctl stats --openmetrics --output /var/lib/prometheus/node-exporter/deferd.prom
            """)

    @Flag(help: "Print metrics in the text format of OpenMetrics.") var openmetrics = false

    @Option(
        name: [.long, .customShort("o")],
        help: .value("file", "Replace this file by the metrics, as a whole, instead of printing them."),
        completion: .file())
    var output: String?

    @OptionGroup var global: GlobalOptions

    func validate() throws {
        if output != nil, !openmetrics { throw ValidationError("--output goes with --openmetrics only.") }
        if openmetrics, global.json { throw ValidationError("Give either --openmetrics or --json, not both.") }
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        guard openmetrics else { return try await invocation.showSheet { try await $0.stats() } }
        let text = OpenMetricsText.text(try await invocation.withDaemon { try await $0.metrics() })
        if let output { try ReplacedFile.write(text, to: output) } else { try invocation.console.data.show(text) }
        return .ok
    }
}

/// Copies the daemon's state into a file.
struct BackupCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Copy the daemon's state into a file, while jobs run.",
        discussion: """
            The file is of one moment and has every job with its result. It is made for you alone, and never over one \
            that is there. Files that jobs downloaded are not in it. deferd(8) says how to go back to it. Only \
            administrators may do this.

            Example: deferctl backup deferd-backup.db
            """)

    @OptionGroup var global: GlobalOptions
    @Argument(help: "The file to make.", completion: .file()) var path: String

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let file = try NewFile(path: path)
        do {
            let size = try await invocation.withDaemon { client in
                let size = try await client.backUp()
                var offset = 0
                while offset < size {
                    let piece = try await client.backupPiece(offset: offset)
                    try file.write(piece.bytes)
                    offset += piece.bytes.count
                }
                return size
            }
            try file.finish()
            if invocation.writesJSON {
                try invocation.console.line(["path": path.json, "size": size.json])
            } else {
                invocation.console.say("\(path.sanitized) has the state, \(size) bytes.")
            }
            return .ok
        } catch {
            file.remove()
            throw error
        }
    }
}
