import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// The daemon's metrics for monitoring.
@Suite struct MetricsTests {
    private func openMetrics(_ daemon: Daemon) async throws -> String {
        let (end, output, errors) = try await ChildProcess.run(
            [BuiltProgram.deferctl, "--socket", daemon.socket, "stats", "--openmetrics"])
        try #require(end == .code(0), "\(errors)")
        return output
    }

    /// Passes this text to readers of metrics: the parser of Prometheus' own client for OpenMetrics, and the parser for
    /// the older format, which the node exporter's textfile collector uses.
    private func parse(_ text: String) async throws {
        let python = "/usr/bin/python3"
        let check = "import prometheus_client.openmetrics.parser as o, prometheus_client.parser as p, sys\n"
        let isThere = Files.exists(python) ? try await ChildProcess.run([python, "-c", check]).end == .code(0) : false
        guard isThere else {
            return print("prometheus_client's parsers were not tried; apt-get install python3-prometheus-client.")
        }
        let read = "t = sys.stdin.read()\nfor f in o, p: print(sum(1 for _ in f.text_string_to_metric_families(t)))\n"
        let (end, output, errors) = try await ChildProcess.run([python, "-c", check + read], input: text)
        #expect(end == .code(0), "\(errors)")
        let families = text.components(separatedBy: "# TYPE ").count - 1
        #expect(output.split(separator: "\n").first.flatMap { Int($0) } == families)
    }

    @Test func metrics_countWhatWasDone_byKind() async throws {
        try await GuidedOrigin.withDaemon(
            { _, _ in .status("404 Not Found") }, configuration: "queues: {default: 4, night: 2}"
        ) { origin, daemon, wire in
            _ = try await wire.run(.value(1))
            _ = try await wire.run(.fetch(origin.url("/missing"), ["retry": ["max": 0]]))
            // A kind that the job invented does not become a label.
            _ = try await wire.run(.failure("made-up"))
            _ = try await wire.submit(.timer(1000, ["queue": "night", "label": "secret-label"]))
            _ = try await wire.call("queue.set", ["queue": "night", "suspended": true])
            for _ in 1...2 {
                let text = try await openMetrics(daemon)
                for line in [
                    "deferd_jobs_submitted_total 4", "deferd_jobs_finished_total{state=\"succeeded\"} 1",
                    "deferd_jobs_finished_total{state=\"failed\"} 2", "deferd_queue_slots{queue=\"night\"} 2",
                    "deferd_queue_suspended{queue=\"night\"} 1", "deferd_queue_suspended{queue=\"default\"} 0",
                    "deferd_queue_jobs{queue=\"night\",state=\"running\"} 1", "deferd_storage_failed 0",
                    "deferd_runs_total{result=\"http\",source=\"url\"} 1",
                    "deferd_run_seconds_count{source=\"url\"} 1", "# UNIT deferd_storage_free_bytes bytes",
                ] {
                    #expect(text.contains("\n\(line)\n"), "\(line)")
                }
                #expect(text.hasSuffix("\n# EOF\n"))
                for word in ["made-up", "secret-label", "127.0.0.1", "/missing", "source=\"timer\""] {
                    #expect(!text.contains(word))
                }
                try await parse(text)
            }
        }
    }

    @Test func pipe_isWrittenTo_andNotReplaced() async throws {
        try await Daemon.run { daemon in
            let path = daemon.directory.path + "/pipe"
            try #require(mkfifo(path, 0o600) == 0)
            // The shell keeps the pipe open, and reads only from what is still a pipe.
            let piped = #"exec 3<>"$7"; "$0" "$@" && [ -p "$7" ] && head -n 1 <&3"#
            for (file, script) in [(path, piped), ("-", #"exec "$0" "$@""#)] {
                let words = ["--socket", daemon.socket, "stats", "--openmetrics", "--color=never", "--output", file]
                let (end, output, errors) = try await ChildProcess.run(
                    ["/bin/sh", "-c", script, BuiltProgram.deferctl] + words, directory: daemon.directory.path)
                #expect(end == .code(0), "\(errors)")
                #expect(output.hasPrefix("# TYPE "))
            }
            #expect(!Files.exists(daemon.directory.path + "/-"))
        }
    }

    @Test func file_isReplaced_andReadableByAll() async throws {
        try await Daemon.run { daemon in
            let file = try daemon.directory.write("before", to: "deferd.prom")
            let (end, output, errors) = try await ChildProcess.run(
                [
                    "/bin/sh", "-c", "umask 022; exec \"$0\" \"$@\"", BuiltProgram.deferctl, "--socket", daemon.socket,
                    "stats", "--openmetrics", "--output", file,
                ])
            #expect(end == .code(0), "\(errors)")
            #expect(output.isEmpty)
            #expect(String(decoding: try Files.bytes(file), as: UTF8.self).hasSuffix("\n# EOF\n"))
            #expect(try Files.mode(of: file) == 0o644)
            // Nothing else is left of it.
            #expect(Files.names(in: daemon.directory.path).filter { $0.hasPrefix("deferd.prom") } == ["deferd.prom"])
        }
    }
}
