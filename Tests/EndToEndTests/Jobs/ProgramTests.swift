import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// Programs from the user's view: permissions, chains, and processes after the daemon's death.
@Suite struct ProgramTests {
    static let anyProgram = "programs: {any: true}\n"

    static func shell(_ script: String, _ members: [String: JSON] = [:]) -> JSON {
        let source: JSON = ["type": "program", "command": ["/bin/sh", "-c", .string(script)]]
        let spec: JSON = ["source": source]
        return spec.with(members)
    }

    /// A named pipe with which processes show that they run, and that none of them is left.
    struct Witness {
        let path: String
        private let descriptor: FileDescriptor

        init(in directory: TemporaryDirectory, _ name: String = "witness") throws {
            let path = directory.path + "/" + name
            try #require(mkfifo(path, 0o600) == 0)
            try self.init(path: path)
        }

        /// Opens the pipe again: a reader that has seen the last writer leave sees nothing else.
        func reopened() throws -> Witness { try Witness(path: path) }

        private init(path: String) throws {
            self.path = path
            // Opened for reading before there is a writer.
            let opened = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
            try #require(opened >= 0)
            _ = fcntl(opened, F_SETFL, 0)
            descriptor = FileDescriptor(number: opened)
        }

        /// Waits for bytes; nil once no process has the pipe open any more.
        func next() async throws -> String? {
            let (result, events): (Int32, Int16) = await withCheckedContinuation { continuation in
                DispatchQueue.global().async { [descriptor] in
                    var awaited = pollfd(fd: descriptor.number, events: Int16(POLLIN), revents: 0)
                    let result = poll(&awaited, 1, Int32(Patience.seconds * 1000))
                    continuation.resume(returning: (result, awaited.revents))
                }
            }
            try #require(result == 1, "No process wrote, or one still runs.")
            guard events & Int16(POLLIN) != 0, let bytes = descriptor.read(), !bytes.isEmpty else { return nil }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    // MARK: - Rights and configuration

    @Test func systemInstance_runsConfiguredProgramsOnly_aReloadChangesThem() async throws {
        let configuration = "programs:\n  greet: {command: [/bin/sh, -c, 'echo hello $0 $SIZE'], variables: [SIZE]}\n"
        try await Daemon.run(configuration: configuration, flags: ["--instance", "system"]) {
            daemon, wire async throws in
            let greet: JSON = ["source": ["type": "program", "program": "greet", "arguments": ["you"]]]
            #expect(try await wire.wait(try await wire.submit(greet))["result"]?["output"] == "hello you")
            let refused = try await wire.refusal("job.submit", Self.shell("true"))
            #expect(refused.code == -32002 && refused.kind == "forbidden" && refused.pointer == "/source/command")
            let sized: JSON = [
                "source": ["type": "program", "program": "greet", "arguments": ["you"], "environment": ["SIZE": "3"]]
            ]
            #expect(try await wire.wait(try await wire.submit(sized))["result"]?["output"] == "hello you 3")
            // With this variable, glibc loads a library into any program that converts text.
            for name in ["GCONV_PATH", "PATH", "size"] {
                let environment: JSON = .object(["SIZE": "3", name: "/tmp"])
                let refused = try await wire.refusal(
                    "job.submit", ["source": ["type": "program", "program": "greet", "environment": environment]])
                #expect(refused.code == -32002 && refused.pointer == "/source/environment/\(name)", "\(refused)")
                let later: JSON = [
                    "source": ["type": "value", "value": "greet"],
                    "then": [
                        ["then": ["source": ["type": "program", "program": "{{input}}", "environment": environment]]]
                    ],
                ]
                #expect(try await wire.wait(try await wire.submit(later))["error"]?["kind"] == "policy")
            }
            let unknown: JSON = ["source": ["type": "program", "program": "any"]]
            let error = try await wire.refusal("job.submit", unknown)
            #expect(error.code == -32602 && error.pointer == "/source/program")
            // In a link and in a child as well.
            let link: JSON = ["source": ["type": "value", "value": 1], "then": [["then": unknown]]]
            #expect(try await wire.refusal("job.submit", link).pointer == "/then/0/then/source/program")
            // The result of an expression is checked when it is known.
            let later: JSON = [
                "source": ["type": "value", "value": ["/bin/true"]],
                "then": [["then": ["source": ["type": "program", "command": "{{input}}"]]]],
            ]
            #expect(try await wire.refusal("job.submit", later).code == -32002)
            let named: JSON = [
                "source": ["type": "value", "value": "rm"],
                "then": [["then": ["source": ["type": "program", "program": "{{input}}"]]]],
            ]
            #expect(try await wire.wait(try await wire.submit(named))["error"]?["kind"] == "invalid")

            try await daemon.reload("programs:\n  any: true\n")
            #expect(try await wire.succeed(Self.shell("echo 1"))["output"] == "1")
            #expect(try await wire.refusal("job.submit", greet).code == -32602)
            try await daemon.reload("programs:\n  greet: {command: [echo]}\n", isRefused: true)
            #expect(try await wire.succeed(Self.shell("echo 2"))["output"] == "2")
        }
    }

    @Test func userInstance_runsAnyCommand_unlessToldOtherwise() async throws {
        try await Daemon.run(flags: ["--instance", "user"]) { daemon, wire async throws in
            #expect(try await wire.succeed(Self.shell("echo 1"))["output"] == "1")
            try await daemon.reload("programs:\n  any: false\n")
            #expect(try await wire.refusal("job.submit", Self.shell("true")).code == -32002)
        }
    }

    @Test func explain_showsASpecAsItIs_andNothingOfTheConfiguration() async throws {
        let configuration = "programs:\n  greet: {command: [/bin/echo, s3cret], environment: {TOKEN: s3cret}}\n"
        try await Daemon.run(configuration: configuration) { _, wire async throws in
            let explained = try await wire.call(
                "job.explain", ["source": ["type": "program", "program": "greet"]])
            #expect(explained["source"] == ["type": "program", "program": "greet", "arguments": [], "output": "text"])
            #expect(!explained.description.contains("s3cret"))
            #expect(!(try await wire.call("server.info", [:])).description.contains("s3cret"))
        }
    }

    // MARK: - Chains

    @Test func programs_areLinksOfAChain() async throws {
        try await Daemon.run(configuration: Self.anyProgram) { _, wire async throws in
            let spec: JSON = [
                "source": ["type": "value", "value": ["numbers": [3, 1, 2]]],
                "then": [
                    [
                        "then": [
                            "source": [
                                "type": "program",
                                "command": [
                                    "/bin/sh", "-c", "cat; echo \"[\\\"$1\\\", $DEFERD_JOB]\" >&2; exit 1", "sh",
                                ],
                                "arguments": ["{{input/numbers/0}}"], "input": "{{input}}",
                            ]
                        ]
                    ],
                    [
                        "fail": [
                            "source": [
                                "type": "program", "command": ["/bin/cat"],
                                "input": ["{{error/program/exit}}", "{{error/program/output}}"],
                            ]
                        ], "on": ["program"],
                    ],
                ],
            ]
            let id = try await wire.submit(spec)
            let output = try #require(try await wire.wait(id)["result"]?["output"]?.string)
            let line = try JSON(parsing: output)
            #expect(line.array?.first == 1)
            // Both streams, each in its order.
            #expect(line.array?.last?.string?.contains("[\"3\", \(id)]\n") == true, "\(line)")
            #expect(line.array?.last?.string?.contains("{\"numbers\":[3,1,2]}\n") == true, "\(line)")
        }
    }

    // MARK: - The daemon's end

    /// Two processes that ignore SIGTERM, and one that does not.
    private static func stubborn(_ witness: Witness) -> String {
        """
        exec 9>'\(witness.path)'; (sleep 1000) & trap '' TERM; (sleep 1000; sleep 1000) &
        echo "$DEFERD_ATTEMPT $DEFERD_RESTARTS" >&9
        wait
        """
    }

    @Test func noProgramOutlivesADaemonThatIsKilled_andTheJobRunsAgain_whereItMayBeRetried() async throws {
        try await Household.with { household async throws in
            let daemon = try await household.start(configuration: Self.anyProgram)
            let witness = try Witness(in: daemon.directory)
            let wire = try daemon.connect()
            let id = try await wire.submit(Self.shell(Self.stubborn(witness), ["retry": ["max": 1]]))
            #expect(try await witness.next() == "1 0\n")
            try await daemon.crash()
            // No process has the pipe open any more.
            #expect(try await witness.next() == nil)
            #expect(Files.names(in: daemon.state + "/programs").count == 2)
            let later = try witness.reopened()
            let again = try await household.start(configuration: Self.anyProgram)
            #expect(try await later.next() == "1 1\n")
            // The files of the first run are gone.
            #expect(Files.names(in: again.state + "/programs").count == 2)
            let second = try again.connect()
            #expect(try await second.call("job.get", .job(id))["restarts"] == 1)
            _ = try await second.call("job.cancel", .job(id))
            #expect(try await later.next() == nil)
            #expect(try await second.wait(id)["state"] == "cancelled")
        }
    }

    @Test func remainsAreCleaned_atTheNextStart_withoutAnyProgram() async throws {
        try await Household.with { household async throws in
            let daemon = try await household.start(configuration: Self.anyProgram)
            let witness = try Witness(in: daemon.directory)
            let wire = try daemon.connect()
            let spec = Self.shell("exec 9>'\(witness.path)'; mkdir a; echo x >&9; sleep 1000", ["delay": 0])
            let id = try await wire.submit(spec)
            #expect(try await witness.next() == "x\n")
            _ = try await wire.call("job.cancel", .job(id))
            try await daemon.crash()
            #expect(try await witness.next() == nil)
            let again = try await household.start(configuration: Self.anyProgram)
            _ = try again.connect()
            try await again.stop()
            #expect(Files.names(in: again.state + "/programs") == ["lock"])
        }
    }

    @Test(arguments: [true, false])
    func anEndOfTheDaemon_endsPrograms_andInterruptsTheirJobs(isKilled: Bool) async throws {
        try await Household.with { household async throws in
            let daemon = try await household.start(configuration: Self.anyProgram)
            let witness = try Witness(in: daemon.directory)
            let wire = try daemon.connect()
            let id = try await wire.submit(
                Self.shell(Self.stubborn(witness), ["then": [["fail": ["return": "{{error/kind}}"]]]]))
            #expect(try await witness.next() == "1 0\n")
            if isKilled { try await daemon.crash() } else { try await daemon.stop() }
            #expect(try await witness.next() == nil)
            let again = try await household.start(configuration: Self.anyProgram)
            #expect(try await again.connect().wait(id)["result"] == "interrupted")
            try await again.stop()
        }
    }

    // MARK: - deferctl run

    @Test func deferctlRun_findsPrograms_andPassesOnArguments() async throws {
        let configuration = "programs: {any: true, greet: {command: [/bin/echo, hello]}}\n"
        try await Daemon.run(configuration: configuration) { daemon async throws in
            func run(_ words: [String], in directory: String? = nil) async throws -> ChildProcess {
                let process = try ChildProcess(
                    [BuiltProgram.deferctl, "--socket", daemon.socket, "run", "--quiet"] + words, directory: directory)
                _ = try await process.end()
                return process
            }
            #expect(try await run(["greet", "you", "--json"]).outputText == "hello you --json\n")
            #expect(try await run(["printf", "a\\nb"]).outputText == "a\nb")
            #expect(try await run(["--", "echo", "--", "-n"]).outputText == "-- -n\n")
            #expect(try await run(["echo", "--", "1"]).outputText == "-- 1\n")
            #expect(try await run(["true"]).outputText.isEmpty)
            #expect(try await run(["pwd"], in: "/usr").outputText == "/usr\n")
            #expect(try await run(["-C", "/etc", "pwd"]).outputText == "/etc\n")
            #expect(try await run(["--scratch", "/bin/pwd"]).outputText.contains("/programs/"))
            #expect(try await run(["./true"], in: "/bin").outputText.isEmpty)
            #expect(try await run(["--input", "{\"a\": 1}", "cat"]).outputText == "{\"a\":1}\n")
            #expect(try await run(["-e", "A=b=c", "sh", "-c", "echo $A"]).outputText == "b=c\n")
            let failed = try await run(["sh", "-c", "echo no >&2; exit 3"])
            #expect(try await failed.end() == .code(3))
            #expect(try await run(["sh", "-c", "kill -TERM $$"]).end() == .code(128 + 15))
            #expect(failed.errorText == "no\n")
            let unknown = try await run(["no-such-program"])
            #expect(try await unknown.end() == .code(65))
            #expect(unknown.errorText.contains("neither in your PATH"), "\(unknown.errorText)")
            #expect(try await run(["--no-such-option", "x"]).end() == .code(64))
            // A given directory makes it a command, whose path may look like a variable.
            #expect(try await run(["-C", "/", "greet"]).end() == .code(65))
            let script = try daemon.directory.write(script: #"echo "$0 $1""#, to: "a=b")
            #expect(try await run([script, "c d"]).outputText == "\(script) c d\n")
            let detached = try await run(["--detach", "printf", #"a\nb "c""#])
            let id = String(detached.outputText.dropLast())
            _ = try await daemon.deferctl(["wait", id])
            #expect(try await daemon.deferctl(["result", id]).outputText == "a\nb \"c\"")
        }
    }
}
