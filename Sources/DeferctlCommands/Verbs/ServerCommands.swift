import ArgumentParser
import JobClient
import JobModel

struct InfoCommand: DaemonCommand {
    static let configuration = verb(
        "info", "Show the daemon's version, limits and sources, and your rights.", example: "deferctl info --json")

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.showSheet { try await $0.info() }
    }
}

struct StatsCommand: DaemonCommand {
    static let configuration = verb(
        "stats", "Show how many jobs the daemon has, and what it has done.",
        example: "deferctl stats --openmetrics --output /var/lib/prometheus/node-exporter/deferd.prom",
        """
        With --openmetrics, administrators get the daemon's metrics in the format of monitoring systems, such as the \
        node exporter's textfile collector.
        """)

    @Flag(help: "Print metrics in the text format of OpenMetrics.") var openmetrics = false

    @Option(
        name: [.long, .customShort("o")],
        help: .value("file", "Replace this file atomically by the metrics, instead of printing them; - prints them."),
        completion: .file())
    var output: String?

    @OptionGroup var global: GlobalOptions

    func validate() throws {
        if output != nil, !openmetrics { throw ValidationError("--output needs --openmetrics.") }
        if openmetrics, global.json { throw ValidationError("Use either --openmetrics or --json, not both.") }
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        guard openmetrics else { return try await invocation.showSheet { try await $0.stats() } }
        let text = OpenMetricsText.text(try await invocation.withDaemon { try await $0.metrics() })
        if let output, output != "-" {
            try await DraftFile.write(to: output, replacing: true) { try $0.write(text) }
        } else {
            try invocation.console.data.show(text)
        }
        return .ok
    }
}

struct UsageCommand: DaemonCommand {
    static let configuration = verb(
        "usage", "Show what each user has stored and runs; administrators see all users.", example: "deferctl usage",
        "STORED is what a user's jobs take up in the daemon's state, MEMORY what the user's connections take up now.")

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let users = try await invocation.withDaemon { try await $0.usage() }
        func number(_ head: String, _ state: String) -> Table<JSON>.Column {
            .number(head, rank: 1) { $0["jobs"]?.number(state) ?? "" }
        }
        func size(_ head: String, _ member: String) -> Table<JSON>.Column {
            .number(head) { $0[member]?.int.map { Quantities.size($0) } ?? "" }
        }
        let table = Table<JSON>([
            .init("USER", cut: .end) { $0.text("name") ?? $0.number("uid") }, number("RUNNING", "running"),
            number("QUEUED", "queued"), number("SCHEDULED", "scheduled"), number("HELD", "held"),
            number("SUCCEEDED", "succeeded"), number("FAILED", "failed"), number("CANCELLED", "cancelled"),
            .number("SCHEDULES", of: "schedules", rank: 2), size("STORED", "stored"),
            size("MEMORY", "memory"),
        ])
        return try invocation.show(users, as: table.lines(users, invocation.console.format))
    }
}

struct NodesCommand: DaemonCommand {
    static let configuration = verb(
        "nodes", "Show the daemons that share the jobs.", example: "deferctl nodes",
        """
        Several daemons share jobs that are in a PostgreSQL database. SEEN is when a node was last in touch with it; a \
        node is away if it did not stop, but has not been in touch for longer than its lease. Nodes with the same \
        CONFIGURATION have the same settings.
        """)

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let nodes = try await invocation.withDaemon { try await $0.nodes() }
        return try invocation.show(nodes, as: NodeTable.lines(nodes, invocation.console.format))
    }
}

enum NodeTable {
    static func lines(_ nodes: [JSON], _ format: TextFormat = TextFormat()) -> [String] {
        func time(_ head: String, _ member: String, rank: Int) -> Table<JSON>.Column {
            .init(head, rank: rank) { $0.time(member).map(Quantities.time) ?? "" }
        }
        return Table<JSON>([
            .init("NODE", cut: .end) { $0.text("node") ?? "?" },
            .init("STATE") { StyledText(state: $0["state"]?.string ?? "?") }, .number("RUNNING", of: "running"),
            .init("VERSION", rank: 2) { $0.text("version") ?? "" }, time("SEEN", "seen", rank: 1),
            time("STARTED", "startedAt", rank: 5), .init("CONFIGURATION", rank: 3) { $0.text("configuration") ?? "" },
            .init("PROGRAMS", cut: .end, rank: 4) { node in
                (node["programs"]?.array ?? []).map { $0.string?.sanitized ?? "" }.joined(separator: " ")
            },
        ]).lines(nodes, format)
    }
}

struct BackupCommand: DaemonCommand {
    static let configuration = verb(
        "backup", "Copy the daemon's state into a file, while jobs run.", example: "deferctl backup deferd-backup.db",
        """
        The file holds the state at one moment, with all jobs and results, but not the files that jobs downloaded. \
        Only you can read it, and it never replaces an existing file. deferd(8) says how to restore it. Only for \
        administrators.
        """)

    @OptionGroup var global: GlobalOptions
    @Argument(help: "The file to create.", completion: .file()) var path: String

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let interruption = Interruption(farewell: "Interrupted; there is no backup.")
        let size = try await interruption.run {
            try await DraftFile.write(to: path, replacing: false) { file in
                try await invocation.withDaemon { client in
                    let size = try await client.backUp()
                    var offset = 0
                    while offset < size {
                        let piece = try await client.backupPiece(offset: offset)
                        try file.write(piece.bytes)
                        offset += piece.bytes.count
                    }
                    return size
                }
            }
        }
        if invocation.writesJSON {
            try invocation.console.line(["path": path.json, "size": size.json])
        } else {
            invocation.console.say("The state is in \(path.sanitized), \(size) bytes.")
        }
        return .ok
    }
}

/// Metrics in the text format of OpenMetrics 1.0, limited to what the node exporter's textfile collector also reads.
///
/// The collector knows Prometheus's older format, in which unknown lines are comments, and rejects samples with times.
enum OpenMetricsText {
    /// The suffixes of a family's samples, each with the member that has its value.
    private static let values = [
        "counter": [("_total", "value")], "gauge": [("", "value")], "summary": [("_count", "count"), ("_sum", "sum")],
    ]

    static func text(_ families: [JSON]) -> String {
        var text = ""
        for family in families {
            guard let name = family["name"]?.string, let type = family["type"]?.string, let values = values[type] else {
                continue
            }
            text += "# TYPE \(name) \(type)\n"
            if let unit = family["unit"]?.string { text += "# UNIT \(name) \(unit)\n" }
            if let help = family["help"]?.string { text += "# HELP \(name) \(escaped(help))\n" }
            for sample in family["samples"]?.array ?? [] {
                let pairs = (sample["labels"]?.object?.members ?? []).map { label in
                    "\(label.name)=\"\(escaped(label.value.string ?? ""))\""
                }
                let labels = pairs.isEmpty ? "" : "{\(pairs.joined(separator: ","))}"
                for (suffix, member) in values {
                    if let value = sample[member] { text += "\(name)\(suffix)\(labels) \(value)\n" }
                }
            }
        }
        return text + "# EOF\n"
    }

    private static func escaped(_ text: String) -> String {
        let escapes: [Unicode.Scalar: String] = ["\\": "\\\\", "\"": "\\\"", "\n": "\\n"]
        return text.unicodeScalars.map { escapes[$0] ?? String($0) }.joined()
    }
}
