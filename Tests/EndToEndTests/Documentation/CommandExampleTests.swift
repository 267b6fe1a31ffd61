import Foundation
import JobModel
import TestOrigin
import TestSupport
import Testing

/// The examples in the help of each verb, and those of deferctl(1), are accepted as they are written.
@Suite struct CommandExampleTests {
    /// The examples of a verb and of its own verbs, in the JSON of the hidden option of swift-argument-parser.
    private static func examples(of verb: JSON) -> [String] {
        let own = (verb["discussion"]?.string ?? "").components(separatedBy: "Example: ").dropFirst()
        return own + (verb["subcommands"]?.array ?? []).flatMap(examples)
    }

    /// The commands of the section EXAMPLES, by block.
    private static func manual() throws -> [String] {
        let page = try String(
            contentsOf: PapersTests.root.appending(path: "config/man/deferctl.1"), encoding: .utf8)
        let section = page.split(separator: ".Sh EXAMPLES").last?.split(separator: ".Sh ").first ?? ""
        return section.split(separator: ".Bd -literal -offset indent\n").dropFirst().compactMap { block in
            let text = block.split(separator: ".Ed").first.map(String.init) ?? ""
            return text.contains("example: spec") ? nil : text.replacing(" \\e\n", with: " ")
        }
    }

    /// Those that run until they are interrupted.
    private static let endless = ["deferctl top", "deferctl watch --tag night"]

    @Test func examples_areAccepted() async throws {
        let help = try await ChildProcess.run([BuiltProgram.deferctl, "--experimental-dump-help"])
        let examples = Self.examples(of: try #require(try JSON(parsing: help.output)["command"])) + (try Self.manual())
        #expect(examples.count > 45)
        try await TestOrigin.run { origin in
            for path in ["/", "/status", "/tool.tar.gz", "/other.tar.gz", "/report", "/store/tool.tar.gz"] {
                origin[path] = OriginResource(text: "worked", etag: "\"1\"")
            }
            origin["/releases/latest"] = .json("{\"assets\": [{\"url\": \"u\"}]}")
            try await Daemon.run(
                configuration: "queues: {night: {concurrency: 1}}\n", flags: ["--instance", "user"]
            ) { daemon, wire in
                let directory = daemon.directory
                _ = try directory.write(script: "exit 0", to: "backup.sh")
                _ = try directory.write(script: "exit 0", to: "report.sh")
                _ = try directory.write(script: "exit 0", to: "ffmpeg")
                try FileManager.default.createDirectory(
                    atPath: directory.path + "/tools", withIntermediateDirectories: false)
                try directory.write("\(origin.url("/report")) one\n", to: "list.txt")
                try directory.write(
                    "{\"source\":{\"type\":\"value\",\"value\":1},\"tags\":[\"night\"]}\n", to: "jobs.jsonl")
                try directory.write("source: {type: value, value: 1}\n", to: "job.yaml")
                for _ in 1...13 { _ = try await wire.wait(try await wire.submit(ProgramTests.shell("echo done"))) }
                // The example of `upload` sends the file that the one of `download` has brought.
                let held = try await wire.submit(.value(1, ["held": true]))
                let programs = URL(filePath: BuiltProgram.deferctl).deletingLastPathComponent().path
                for example in examples {
                    var script = example.replacing("https://example.org", with: origin.url(""))
                        .replacing("/var/lib/prometheus/node-exporter", with: directory.path)
                    // Settings are for jobs that are not finished, and all else that is done to job 12 for one that is.
                    script = script.replacing("deferctl set 12", with: "deferctl set \(held)")
                    for command in Self.endless { script = script.replacing(command, with: ":") }
                    // Another example may have removed it.
                    _ = try await wire.call(
                        "schedule.set", ["schedule": "nightly", "every": 3600, "spec": .value(1)])
                    let run = try await ChildProcess.run(
                        ["/bin/sh", "-ec", script],
                        environment: [
                            "PATH": "\(directory.path):\(programs):/usr/bin:/bin", "DEFERD_SOCKET": daemon.socket,
                        ], directory: directory.path)
                    #expect(run.end == .code(0), "\(script): \(run.errors)")
                }
            }
        }
    }
}
