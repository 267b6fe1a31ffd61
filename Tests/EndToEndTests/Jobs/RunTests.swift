import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// `deferctl run` and `deferctl output`, as a user of a shell meets them.
@Suite struct RunTests {
    private static let user = ["--instance", "user"]

    private static func run(_ script: String, _ options: [String] = [], on daemon: Daemon) throws -> ChildProcess {
        try ChildProcess(
            [BuiltProgram.deferctl, "--socket", daemon.socket, "run"] + options + ["/bin/sh", "-c", script])
    }

    @Test func run_writesBothStreamsAndExits_asTheProgramDoes() async throws {
        try await Daemon.run(flags: Self.user) { daemon in
            let odd = try Self.run(#"printf 'a\351\0b'; printf '\377c' >&2; exit 7"#, on: daemon)
            #expect(try await odd.end() == .code(7))
            #expect(odd.output == [0x61, 0xE9, 0, 0x62])
            #expect(Array(odd.errorText.utf8) == Array("\u{FFFD}c".utf8))
            let killed = try Self.run("kill -9 $$", on: daemon)
            #expect(try await killed.end() == .code(137))
            #expect(killed.output.isEmpty && killed.errorText.contains("ended by signal 9"))
            let long = try Self.run("seq 1 100000; echo done >&2", on: daemon)
            #expect(try await long.end() == .code(0))
            #expect(long.outputText == (1...100_000).map { "\($0)\n" }.joined() && long.errorText == "done\n")
            var late: ChildProcess
            repeat {
                // On a stalled machine, the time is up before the program writes.
                late = try Self.run("echo begun; sleep 1000", ["--timeout", "0.5"], on: daemon)
                #expect(try await late.end() == .code(1))
            } while late.output.isEmpty
            #expect(late.outputText == "begun\n" && late.errorText.contains("timeout"))
            let retried = try Self.run("echo $DEFERD_ATTEMPT; exit 75", ["--retries", "2"], on: daemon)
            #expect(try await retried.end() == .code(75))
            #expect(retried.outputText == "1\n2\n3\n")
            let json = try await daemon.deferctl(["--json", "run", "/bin/echo", "x"])
            #expect(try JSON(parsing: Array(json.output))["result"]?["output"] == "x")
        }
    }

    @Test func run_isLive_andCtrlCDetaches() async throws {
        try await Daemon.run(flags: Self.user) { daemon in
            let gate = daemon.directory.path + "/gate"
            try #require(mkfifo(gate, 0o600) == 0)
            let process = try Self.run("echo first; read -r line < '\(gate)'; echo $line; sleep 1000", on: daemon)
            try await process.line(containing: "first")
            try Data("second\n".utf8).write(to: URL(filePath: gate))
            try await process.line(containing: "second")
            process.send(signal: SIGINT)
            #expect(try await process.end() == .code(75))
            #expect(process.errorText.contains("deferctl --socket \(daemon.socket) output -f 1"))
            let wire = try daemon.connect()
            #expect(try await wire.call("job.get", .job(1))["state"] == "running")
            // Another one takes up where it likes.
            let follower = try ChildProcess([BuiltProgram.deferctl, "--socket", daemon.socket, "output", "-f", "1"])
            try await follower.line(containing: "second")
            _ = try await wire.call("job.cancel", .job(1))
            #expect(try await follower.end() == .code(0))
            #expect(follower.outputText == "first\nsecond\n")
        }
    }

    @Test func run_endsWith74_whenOutputIsLost() async throws {
        try await Daemon.run(configuration: "limits: {output: 1000}\n", flags: Self.user) { daemon in
            for (script, code) in [("head -c 60000 /dev/zero", 74), ("head -c 60000 /dev/zero; exit 3", 3)] {
                // Of an earlier job with the key, only the kept output can be read.
                let options = ["--key", "\(code)"]
                let job = try await daemon.deferctl(["run", "--detach"] + options + ["/bin/sh", "-c", script])
                _ = try await daemon.connect().wait(try #require(Int(job.outputText.dropLast())))
                let lossy = try Self.run(script, options, on: daemon)
                #expect(try await lossy.end() == .code(Int32(code)), "\(lossy.errorText)")
                #expect(lossy.output.count == 1000 && lossy.errorText.contains("59000 bytes of output of job"))
            }
        }
    }

    @Test func run_takesOptionsOfEveryVerb_andPassesAllArguments() async throws {
        try await Daemon.run(flags: Self.user) { daemon in
            func run(_ words: String...) async throws -> String {
                try await daemon.deferctl(["run"] + words).outputText
            }
            #expect(try await run("echo", "--", "x") == "-- x\n")
            #expect(try await run("--", "echo", "x", "--") == "x --\n")
            #expect(try JSON(parsing: Array(try await run("--json", "true").utf8))["state"] == "succeeded")
            let wrong = try await daemon.deferctl(["run", "--timeout", "0", "true"], end: .code(65))
            #expect(wrong.errorText.contains("/timeout") && !wrong.errorText.contains("no program"))
        }
    }

    @Test func secondCtrlC_cancelsTheJob() async throws {
        try await Daemon.run(flags: Self.user) { daemon in
            var end = ChildProcess.End.code(75)
            // On a stalled machine, the second one comes too late, which only detaches.
            while end == .code(75) {
                let process = try Self.run(
                    "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.1; done", on: daemon)
                try await process.line(containing: "up")
                process.send(signal: SIGINT)
                try await process.line(containing: "Press Ctrl-C again")
                process.send(signal: SIGINT)
                end = try await process.end()
                if end != .code(75) { #expect(process.outputText == "up\nbye\n") }
            }
            #expect(end == .code(2))
            let jobs = try await daemon.connect().call("job.list", ["state": ["cancelled"]])["jobs"]?.array
            #expect(jobs?.count == 1)
        }
    }

    @Test func output_canBeReadAfterAnyEnd_byStreamAttemptAndJob() async throws {
        try await Daemon.run(flags: Self.user) { daemon in
            let script = "echo out $DEFERD_ATTEMPT; echo err $DEFERD_ATTEMPT >&2; printf rest; exit 75"
            #expect(try await Self.run(script, ["--retries", "1"], on: daemon).end() == .code(75))
            func output(_ arguments: String...) async throws -> String {
                try await daemon.deferctl(["output"] + arguments).outputText
            }
            // Which of two pipes comes first is not known.
            let both = ["out 2\nerr 2\nrest", "out 2\nresterr 2\n", "err 2\nout 2\nrest"]
            #expect(both.contains(try await output("1")))
            #expect(try await output("1", "--attempt", "1", "--stream", "out") == "out 1\nrest")
            #expect(try await output("1", "--stream", "err") == "err 2\n")
            #expect(
                try await output("1", "--stream", "err", "--json")
                    == #"{"job":1,"stream":"err","text":"err 2\n"}"# + "\n")
            let wire = try daemon.connect()
            let list: JSON = [
                "source": [
                    "type": "list",
                    "jobs": [
                        ProgramTests.shell("echo a; printf b"), .value("no program"), ProgramTests.shell("echo c"),
                    ],
                ]
            ]
            _ = try await wire.wait(try await wire.submit(list))
            #expect(try await output("2") == "3 a\n5 c\n3 b\n")
            #expect(try await output("5", "1", "--stream", "out") == "5 c\n1 out 2\n1 rest\n")
            _ = try await daemon.deferctl(["output", "99"], end: .code(65))
            let none = try await daemon.deferctl(["output", "4"], end: .code(65))
            #expect(none.errorText.contains("has no output of a program"))
            let some = try await daemon.deferctl(["output", "4", "5", "99", "3"], end: .code(65))
            #expect(some.outputText == "5 c\n3 a\n3 b\n" && some.errorText.contains("99"))
            #expect(some.errorText.contains("has no output of a program"))
            #expect(try await Self.run("echo first; echo last; exit 1", on: daemon).end() == .code(1))
            let shown = try await daemon.deferctl(["show", "6"]).outputText
            #expect(shown.hasSuffix("its program wrote at last:\n    first\n    last\n"))
        }
    }

    @Test func outputOfAList_isFollowedLineByLine() async throws {
        try await Daemon.run(flags: Self.user) { daemon, wire in
            let gate = daemon.directory.path + "/gate"
            try #require(mkfifo(gate, 0o600) == 0)
            let list: JSON = [
                "source": [
                    "type": "list",
                    "jobs": [
                        ProgramTests.shell("printf par; cat '\(gate)'; echo tial"), ProgramTests.shell("echo whole"),
                    ],
                ]
            ]
            let job = try await wire.submit(list)
            let follower = try ChildProcess(
                [BuiltProgram.deferctl, "--socket", daemon.socket, "output", "-f", "\(job)"])
            try await follower.line(containing: "3 whole")
            try Data("-".utf8).write(to: URL(filePath: gate))
            #expect(try await follower.end() == .code(0))
            #expect(follower.outputText == "3 whole\n2 par-tial\n")
        }
    }

    @Test func outputOfAList_isPrintedOnce_whenItIsCancelled() async throws {
        try await Daemon.run(flags: Self.user) { daemon, wire in
            let list: JSON = ["type": "list", "jobs": [ProgramTests.shell("echo begun; exec sleep 1000")]]
            let job = try await wire.submit(["source": list])
            let follower = try ChildProcess(
                [BuiltProgram.deferctl, "--socket", daemon.socket, "output", "-f", "\(job)"])
            try await follower.line(containing: "2 begun")
            _ = try await wire.call("job.cancel", .job(job))
            #expect(try await follower.end() == .code(0))
            #expect(follower.outputText == "2 begun\n")
        }
    }

    @Test func outputOfAList_hasThatOfALaterLink() async throws {
        try await Daemon.run(flags: Self.user) { daemon, wire in
            let source: JSON = ["type": "list", "jobs": [ProgramTests.shell("echo child")]]
            _ = try await wire.succeed(["source": source, "then": [["then": ProgramTests.shell("echo later")]]])
            let run = try await daemon.deferctl(["output", "1"])
            #expect(run.outputText == "2 child\n1 later\n")
        }
    }

    @Test func outputOfAList_hasThatOfChildren_ofWhichNoWatchTells() async throws {
        try await Household.with { household in
            var (daemon, wire) = try await household.serve(flags: Self.user)
            let gate = daemon.directory.path + "/gate"
            try #require(mkfifo(gate, 0o600) == 0)
            let jobs: JSON = [ProgramTests.shell("cat '\(gate)'; echo last"), ProgramTests.shell("echo first")]
            let job = try await wire.submit(["source": ["type": "list", "jobs": jobs], "delay": 1000])
            let follower = try ChildProcess(
                [BuiltProgram.deferctl, "--socket", daemon.socket, "output", "-f", "\(job)"])
            try await wire.eventually { $0["watches"] == 1 }
            follower.send(signal: SIGSTOP)
            try await daemon.crash()
            (daemon, wire) = try await household.serve(flags: Self.user)
            _ = try await wire.call("job.release", .job(job))
            try await wire.eventually { $0["totals"]?["succeeded"] == 1 }
            follower.send(signal: SIGCONT)
            try await follower.line(containing: "3 first")
            try Data("-\n".utf8).write(to: URL(filePath: gate))
            #expect(try await follower.end() == .code(0))
            #expect(follower.outputText == "3 first\n2 -\n2 last\n")
            try await daemon.stop()
        }
    }

    @Test(.enabled(if: Tmux.isThere, Tmux.whyNot)) func lastLine_isShownOfWhatRuns() async throws {
        try await Daemon.run(flags: Self.user) { daemon, wire in
            for name in ["one", "two"] {
                _ = try await wire.submit(ProgramTests.shell("echo early; echo latest \(name); sleep 1000"))
            }
            try await Tmux.with(daemon, columns: 160) { terminal in
                try await terminal.enter("clear; deferctl top --interval 0.2")
                try await terminal.shows("the last lines") { screen in
                    screen.contains { $0.contains(": latest one") } && screen.contains { $0.contains(": latest two") }
                }
                try await terminal.press("q")
                try await terminal.shows("the shell") { $0.contains("$") }
                _ = try await wire.submit(ProgramTests.shell("while :; do echo again; sleep 0.1; done"))
                try await terminal.enter("clear; deferctl watch 3")
                try await terminal.shows("again")
                try await terminal.press("C-c")
            }
        }
    }
}
