import Foundation
import JobModel
import TestOrigin
import TestSupport
import Testing

/// The README is true: its recipes run, its lines for a plain socket are answered, its flags exist.
@Suite struct ReadmeTests {
    private static let text: String = {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        return (try? String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)) ?? ""
    }()

    /// The fenced blocks whose first line begins with `fence`, by the rest of that line.
    private static func blocks(_ fence: String) -> [(name: String, text: String)] {
        var blocks: [(String, String)] = []
        var open: (name: String, lines: [Substring])?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if let block = open {
                if line == "```" {
                    blocks.append((block.name, block.lines.joined(separator: "\n")))
                    open = nil
                } else {
                    open?.lines.append(line)
                }
            } else if line.hasPrefix("```" + fence) {
                open = (String(line.dropFirst(fence.count + 3)), [])
            }
        }
        return blocks
    }

    private static let content = [UInt8](repeating: 7, count: 10_000)

    /// The content of example.org.
    private static func furnish(_ origin: TestOrigin) {
        origin["/login"] = .json("{\"token\": \"secret\"}")
        origin["/stuff"] = .json("[\"a\"]")
        origin["/more"] = .json("[\"b\"]")
        origin["/friends"] = .json("[{\"id\": 1}, {\"id\": 2}]")
        origin["/users/1"] = .json("{\"name\": \"Bea\"}")
        origin["/users/2"] = .json("{\"name\": \"Cem\"}")
        origin["/document"] = .json("{\"picture\": \"\(origin.url("/picture"))\"}")
        origin["/tool.tar.gz"] = OriginResource(content, etag: "\"1\"")
        var slow = OriginResource(content, etag: "\"1\"")
        slow.stalls = true
        origin["/slow.tar.gz"] = slow
        origin["/work"] = OriginResource(text: "worked")
        origin["/done"] = OriginResource(text: "noted")
    }

    @Test func recipes_doWhatTheySay() async throws {
        let recipes = Self.blocks("json recipe=")
        #expect(
            recipes.map(\.name) == [
                "login", "friends", "picture", "fallback", "release", "fastest", "relay", "webhook", "report",
                "program",
            ])
        try await TestOrigin.run { origin in
            Self.furnish(origin)
            try await Daemon.run(
                configuration: "programs: {digest: {command: [/bin/sh, -c, exec sha256sum, digest]}}\n"
            ) { daemon, wire in
                let sha256 =
                    try await wire.succeed([
                        "source": ["type": "download", "url": .string(origin.url("/tool.tar.gz")), "path": "probe"]
                    ])["sha256"]?.string ?? ""
                origin["/releases/latest"] = .json(
                    """
                    {"tag": "1.2", "assets": [{"url": "\(origin.url("/tool.tar.gz"))", "sha256": "\(sha256)"}]}
                    """)
                origin["/store/" + sha256] = OriginResource(text: "kept")
                for (name, text) in recipes {
                    let spec = try JSON(parsing: text.replacing("https://example.org", with: origin.url("")))
                    if name == "report" {
                        try await Self.checkSchedule(spec, wire, daemon)
                        continue
                    }
                    let result = try await wire.succeed(spec)
                    switch name {
                    case "login":
                        #expect(result == ["stuff": ["a"], "more": ["b"]])
                        #expect(origin.log.last("/stuff")?.headers["authorization"] == "Bearer secret")
                    case "friends": #expect(result == ["Bea", "Cem"])
                    case "picture": #expect(result == ["failed": "http", "at link": 1])
                    case "fallback": #expect(result["path"]?.string == daemon.downloads + "/either.tar.gz")
                    case "release": #expect(result["path"]?.string == daemon.downloads + "/releases/1.2.tar.gz")
                    case "fastest":
                        #expect(result.string == daemon.downloads + "/from-b.tar.gz")
                        #expect(
                            Files.names(in: daemon.downloads).filter { $0.hasPrefix("from-") } == [
                                "from-b.tar.gz"
                            ])
                    case "relay":
                        #expect(result["sha256"]?.string == sha256)
                        #expect(origin.log.last("/store/" + sha256)?.body == Self.content)
                    case "webhook":
                        #expect(result["body"] == "worked")
                        #expect(origin.log.count("/done") == 1)
                    case "program":
                        #expect(result.string?.hasSuffix("  -") == true && result.string?.utf8.count == 67)
                    default: Issue.record("The recipe \(name) is not tested.")
                    }
                }
            }
        }
    }

    /// The recipe of a schedule is taken, and submits a job that succeeds.
    private static func checkSchedule(_ spec: JSON, _ wire: Wire, _ daemon: Daemon) async throws {
        let set = try await wire.call(
            "schedule.set",
            ["schedule": "report", "calendar": "0 6 * * mon-fri", "zone": "Europe/Berlin", "spec": spec])
        #expect(set["next"]?.string?.hasSuffix(":00:00.000Z") == true)
        let job = try await wire.wait(try await wire.call("schedule.run", ["schedule": "report"])["job"]?.int ?? 0)
        #expect(job["result"]?["path"]?.string?.hasPrefix(daemon.downloads + "/report-2") == true, "\(job)")
    }

    @Test(.enabled(if: Files.exists("/usr/include/postgresql/libpq-fe.h"), "libpq-dev is not installed."))
    func configuration_isGood() async throws {
        let blocks = Self.blocks("yaml")
        #expect(blocks.count == 1)
        try await TemporaryDirectory.with { directory in
            for block in blocks {
                let command = try Daemon.command(in: directory, configuration: block.text) + ["--check"]
                let (end, _, errors) = try await ChildProcess.run(command)
                #expect(end == .code(0), "\(errors)")
            }
        }
    }

    /// The job that the habit with this verb is tried on.
    private static func script(for command: String) -> String {
        switch command.split(separator: " ")[1] {
        case "cancel": "sleep 1000"
        case "retry": "exit 3"
        default: "echo done"
        }
    }

    @Test func habits_areCarriedOut() async throws {
        let habits = Self.text.split(separator: "\n").compactMap { line -> String? in
            guard line.hasPrefix("|"), let last = line.split(separator: "|").last else { return nil }
            let command = last.trimmingCharacters(in: .whitespaces).split(separator: "`").first.map(String.init)
            return command.flatMap { $0.hasPrefix("deferctl ") && !$0.contains("(1)") ? $0 : nil }
        }
        #expect(habits.count == 29)
        try await TestOrigin.run { origin in
            Self.furnish(origin)
            try await Daemon.run(flags: ["--instance", "user"]) { daemon in
                let directory = daemon.directory
                _ = try directory.write(script: "echo made in $PWD", to: "make")
                try directory.write("\(origin.url("/work")) one\n\(origin.url("/done")) two\n", to: "list.txt")
                let programs = URL(filePath: BuiltProgram.deferctl).deletingLastPathComponent().path
                let environment = [
                    "PATH": "\(directory.path):\(programs):/usr/bin:/bin", "DEFERD_SOCKET": daemon.socket,
                ]
                let sha256 = try #require(
                    try await ChildProcess.run(["/bin/sh", "-c", "printf worked | sha256sum"]).output.split(
                        separator: " "
                    )
                    .first)
                let wire = try daemon.connect()
                for habit in habits {
                    let script = Self.script(for: habit)
                    let job = try await wire.submit(ProgramTests.shell(script))
                    if script != "sleep 1000" { _ = try await wire.wait(job) }
                    let command = habit.replacing(" 3", with: " \(job)").replacing("sha256:…", with: "sha256:\(sha256)")
                        .replacing("URL2", with: origin.url("/done"))
                        .replacing("URL", with: origin.url(habit.contains("checksum") ? "/work" : "/tool.tar.gz"))
                    let run = try await ChildProcess.run(
                        ["/bin/sh", "-c", command + (habit.contains("URL URL2") ? " --exists rename" : "")],
                        environment: environment, directory: directory.path)
                    #expect(run.end == .code(0), "\(habit): \(run.errors)")
                    if command.contains("output") { #expect(run.output == "done\n", "\(habit)") }
                    if habit == "deferctl run make" { #expect(run.output == "made in \(directory.path)\n") }
                    if habit.contains("--exists skip") {
                        #expect(run.output.hasSuffix("/one\n\(directory.path)/two\n"))
                    }
                    guard habit.contains("--detach"), !habit.contains("--delay"), !habit.contains("--at ") else {
                        continue
                    }
                    let made = try await wire.wait(try #require(Int(run.output.dropLast())))
                    #expect(made["state"] == "succeeded", "\(habit): \(made)")
                }
            }
        }
    }

    @Test func socketLines_areAnswered_asTheyStandThere() async throws {
        let lines = Self.blocks("sh").flatMap { $0.text.split(separator: "\n") }.filter { $0.hasPrefix("printf") }
        #expect(lines.count == 3)
        try await Daemon.run { daemon in
            for (index, line) in lines.enumerated() {
                let parts = line.split(separator: "'")
                let wire = try daemon.connect()
                wire.sendLine(String(try #require(parts.count > 3 ? parts[3] : nil)))
                wire.finishWriting()
                let rest = try await wire.rest()
                #expect(rest.first?.json["id"] == JSON(index + 1))
                #expect(rest.first?.json["result"]?["job"] == JSON([1, 1, 2][index]))
                #expect(rest.last?.json["params"]?["snapshot"]?["result"] == (index == 2 ? "rested" : nil))
            }
        }
    }
}
