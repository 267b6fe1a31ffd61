import FakeDaemon
import Glibc
import JobModel
import TestOrigin
import TestSupport
import Testing

/// The program deferctl: its start, its outputs, and restarts of the daemon.
@Suite struct DeferctlTests {
    @Test func longPathOfASocket_isRefused_withItsBound() async throws {
        let path = "/tmp/" + String(repeating: "x", count: 120)
        for verb in ["info", "doctor"] {
            let run = try await ChildProcess.run([BuiltProgram.deferctl, verb], environment: ["DEFERD_SOCKET": path])
            #expect(run.end == .code(78) && (run.errors + run.output).contains("at most 107"), "\(run)")
        }
    }

    @Test(arguments: ["--help", "help list", "--version"])
    func help_endsWith74_whenItCannotBeWritten(words: String) async throws {
        let run = try await ChildProcess.run(["/bin/sh", "-c", "\(BuiltProgram.deferctl) \(words) >/dev/full"])
        #expect(run.end == .code(74) && run.errors.contains("No space left"), "\(run.errors)")
    }

    @Test func help_endsAsBySIGPIPE_whenThatIsBlocked() async throws {
        let (near, far) = try Self.sockets(SOCK_STREAM)
        far.close()
        let help = try ChildProcess(
            ["/usr/bin/env", "--block-signal=PIPE", BuiltProgram.deferctl, "--help"], socket: near)
        #expect(try await help.end() == .code(128 + SIGPIPE))
    }

    /// Two ends of a socket.
    private static func sockets(_ type: __socket_type) throws -> (FileDescriptor, FileDescriptor) {
        let ends = Inheritance.none { () -> [Int32]? in
            var ends: [Int32] = [0, 0]
            return socketpair(AF_UNIX, Int32(type.rawValue), 0, &ends) == 0 ? ends : nil
        }
        try #require(ends.count == 2, "no sockets: \(String(cString: strerror(errno)))")
        return (FileDescriptor(number: ends[0]), FileDescriptor(number: ends[1]))
    }

    @Test func linesOfSeveralJobs_areWrittenTogether() async throws {
        try await Daemon.run(flags: ["--instance", "user"]) { daemon in
            for _ in 0..<2 { _ = try await daemon.deferctl(["run", "--quiet", "seq", "1000"]) }
            // Each packet is one write.
            let (near, far) = try Self.sockets(SOCK_SEQPACKET)
            let output = try ChildProcess(
                [BuiltProgram.deferctl, "--socket", daemon.socket, "output", "1", "2"], socket: near)
            near.close()
            var packets: [String] = []
            while let packet = far.read(), !packet.isEmpty { packets.append(String(decoding: packet, as: UTF8.self)) }
            far.close()
            #expect(try await output.end() == .code(0))
            #expect(packets.joined() == (1...2).map { job in (1...1000).map { "\(job) \($0)\n" }.joined() }.joined())
            #expect(packets.count < 100)
        }
    }

    @Test func columns_keepTheirWidths_onEachPage() async throws {
        @Sendable func page(_ id: Int, _ queue: String, next: Int?) -> JSON {
            let job: JSON = [
                "job": JSON(id), "state": "queued", "source": ["type": "url", "url": "https://example.org/a"],
                "queue": .string(queue), "createdAt": "2026-11-20T17:25:35.000Z", "link": 0, "links": 0, "outcomes": [],
            ]
            return ["jobs": [job], "next": next.map { JSON($0) } ?? .null]
        }
        let serve: @Sendable (FakeConnection) -> Void = { daemon in
            if let call = daemon.call() { daemon.answer(call, page(1000, "a-long-name", next: 1000)) }
            if let call = daemon.call() { daemon.answer(call, page(7, "a", next: nil)) }
        }
        let list = try await FakeDaemon.with(serve) { path in
            try await ChildProcess.run([BuiltProgram.deferctl, "--socket", path, "list", "--all"])
        }
        let lines = list.output.split(separator: "\n")
        #expect(lines.count == 3, "\(list)")
        // The URL, the last column, begins at the same place.
        #expect(Set(lines.dropFirst().map { $0.prefix { $0 != ":" }.count }).count == 1, "\(list)")
    }

    @Test func misspeltOption_isNamed_beforeOtherMistakes() async throws {
        let run = try await ChildProcess.run([BuiltProgram.deferctl, "list", "--stat", "failed"])
        #expect(run.end == .code(64))
        #expect(run.errors.contains("no option --stat of deferctl list. Did you mean --state?"), "\(run.errors)")
    }

    @Test func optionsOfEveryVerb_comeAfterAnyArgument_evenRun() async throws {
        try await Daemon.run { daemon in
            let list = try await ChildProcess.run(
                [BuiltProgram.deferctl, "list", "--tag", "run", "--json", "--socket", daemon.socket, "--color=never"])
            #expect(list.end == .code(0), "\(list.errors)")
            let schedule = try await daemon.deferctl(["schedule", "run", "run", "--utc"], end: .code(65))
            #expect(schedule.errorText.contains("no schedule"))
            for option in ["--socket", "--color"] {
                let missing = try await daemon.deferctl(["list", "--tag", "run", option], end: .code(64))
                #expect(missing.errorText.contains("Missing value for '\(option)"))
            }
        }
    }

    @Test func top_goesOn_whenTheDaemonRestarts() async throws {
        try await Household.with { household in
            let daemon = try await household.start()
            let top = try ChildProcess(
                [BuiltProgram.deferctl, "--socket", daemon.socket, "top", "--json", "--interval", "0.2"])
            try await top.line(containing: "\"queues\"")
            try await daemon.stop()
            try await top.line(containing: "The daemon went away")
            _ = try await household.start()
            try await top.line(containing: "The daemon is back.")
            try await top.line(containing: "\"queues\"")
            top.send(signal: SIGINT)
            #expect(try await top.end() == .code(75))
        }
    }

    @Test func output_isFollowedToItsEnd_whenTheDaemonRestarts() async throws {
        try await Household.with { household in
            let daemon = try await household.start(flags: ["--instance", "user"])
            _ = try await daemon.deferctl(["run", "--detach", "sh", "-c", "echo begun; exec sleep 1000"])
            let output = try ChildProcess([BuiltProgram.deferctl, "--socket", daemon.socket, "output", "-f", "1"])
            try await output.line(containing: "begun")
            try await daemon.crash()
            _ = try await household.start(flags: ["--instance", "user"])
            #expect(try await output.end() == .code(0), "\(output.errorText)")
            #expect(output.outputText == "begun\n")
        }
    }

    @Test func wait_endsInTime_whenTheDaemonIsAway() async throws {
        try await Household.with { household in
            let daemon = try await household.start()
            let wire = try daemon.connect()
            let job = try await wire.submit(.timer(1000))
            let wait = try ChildProcess(
                [BuiltProgram.deferctl, "--socket", daemon.socket, "wait", "--timeout", "3", String(job)])
            try await wire.eventually { $0["connections"] == 2 }
            try await daemon.crash()
            #expect(try await wait.end() == .code(75), "\(wait.errorText)")
        }
    }

    @Test func hints_nameTheDaemonOfTheFlag() async throws {
        try await Daemon.run { daemon, wire in
            let job = try await wire.submit(.timer(1000))
            _ = try await wire.call("job.cancel", .job(job))
            let wait = try await daemon.deferctl(["wait", String(job)], end: .code(2))
            #expect(wait.errorText.contains("with: deferctl --socket \(daemon.socket) retry \(job)"))
        }
    }

    @Test func longResult_isPrinted_whenTheDaemonRestarts() async throws {
        try await GuidedOrigin.withHousehold { origin, household in
            let daemon = try await household.start()
            let url = try #require(origin.url("/long").string)
            let json = try ChildProcess([BuiltProgram.deferctl, "--socket", daemon.socket, "json", "-qr", url])
            _ = try await origin.exchange("/long")
            try await daemon.stop()
            _ = try await household.start()
            let text = String(repeating: "x", count: 100_000)
            let exchange = try await origin.exchange("/long")
            exchange.sendHead("200 OK", [("Content-Length", "100002"), ("Content-Type", "application/json")])
            exchange.send(Array("\"\(text)\"".utf8))
            #expect(try await json.end() == .code(0), "\(json.errorText)")
            #expect(json.outputText == text + "\n")
        }
    }

    @Test(.enabled(if: Tmux.isThere, Tmux.whyNot)) func watch_leavesTheOutcome_ofASingleJob() async throws {
        try await Daemon.run { daemon, wire in
            _ = try await wire.wait(try await wire.submit(.value(1, ["label": "the only one"])))
            try await Tmux.with(daemon) { terminal in
                let screen = try await terminal.run("deferctl watch 1")
                #expect(screen.contains { $0.contains("the only one  succeeded") }, "\(screen)")
            }
        }
    }
}
