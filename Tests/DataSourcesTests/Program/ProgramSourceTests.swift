import DataSources
import DeferredKit
import Foundation
import Glibc
import JobModel
import NIOCore
import NIOEmbedded
import NIOPosix
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// Programs from their start to the end of their groups.
@Suite struct ProgramSourceTests {
    /// Runs `body` with a bench that runs any command, and the programs `entries`.
    static func run(
        files: FileOperations = .real, timers: NIOAsyncTestingEventLoop? = nil,
        _ entries: [String: ProgramSettings.Entry] = [:], change: (inout SourceSettings) -> Void = { _ in },
        _ body: (Workbench) async throws -> Void
    ) async throws {
        let directory = NSTemporaryDirectory() + "deferd-programs-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await Workbench.run(files: files, timers: timers) { settings in
            change(&settings)
            settings.programs.directory = directory
            settings.programs.allowsAny = true
            settings.programs.entries = entries.merging(["sh": .init(command: ["/bin/sh", "-c"])]) { $1 }
        } _: { bench async throws in
            try await body(bench)
        }
        // Whatever became of them, nothing of their own is left.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? ["lock"]
        #expect(names == ["lock"])
    }

    static func shell(_ script: String, _ members: [String: JSON] = [:]) -> JSON {
        var source: JSONObject = JSONObject()
        source["type"] = "program"
        source["command"] = ["/bin/sh", "-c", .string(script)]
        for (name, value) in members { source[name] = value }
        return .object(source)
    }

    /// The same as a configured program, which can report progress.
    static func configured(_ script: String, _ members: [String: JSON] = [:]) -> JSON {
        var source: JSONObject = ["type": "program", "program": "sh", "arguments": [.string(script)]]
        for (name, value) in members { source[name] = value }
        return .object(source)
    }

    private static func lines(_ result: JSON) -> [String] {
        (result["output"]?.string ?? "").split(separator: "\n").map(String.init)
    }

    @Test func result_tellsOutput_whoseLogCannotBeBegun() async throws {
        var files = FileOperations.real
        files.writeAt = { _, _, _ throws(Errno) in throw Errno.noSpace }
        try await Self.run(files: files) { bench async throws in
            let result = try await bench.result(Self.shell("echo out; echo err >&2"))
            #expect(result == ["exit": 0, "output": "out", "size": 4, "omitted": 8])
        }
    }

    // MARK: - Surroundings

    @Test func environment_isClean() async throws {
        var entry = ProgramSettings.Entry(command: ["/usr/bin/env"])
        entry.environment = ["LEVEL": "3", "LD_X": "1"]
        entry.variables = ["LEVEL", "B"]
        try await Self.run(["env": entry]) { bench async throws in
            let home = NSHomeDirectory()
            let any = try await bench.result(
                ["type": "program", "command": ["/usr/bin/env"], "environment": ["A": "1=2", "LANG": "C"]], job: 7,
                attempt: 3)
            #expect(
                Self.lines(any).sorted() == [
                    "A=1=2", "DEFERD_ATTEMPT=3", "DEFERD_JOB=7", "DEFERD_RESTARTS=0", "HOME=\(home)", "LANG=C",
                    "PATH=/usr/local/bin:/usr/bin:/bin",
                ])
            // What is configured stands.
            let named = try await bench.result([
                "type": "program", "program": "env", "environment": ["LEVEL": "9", "B": ""],
            ])
            #expect(
                Self.lines(named).sorted() == [
                    "B=", "DEFERD_ATTEMPT=1", "DEFERD_JOB=1", "DEFERD_RESTARTS=0", "HOME=\(home)", "LANG=C.UTF-8",
                    "LD_X=1", "LEVEL=3", "PATH=/usr/local/bin:/usr/bin:/bin",
                ])
            for name in ["PATH", "GCONV_PATH", "C"] {
                let error = try await bench.failure([
                    "type": "program", "program": "env", "environment": .object(["B": "1", name: "/tmp"]),
                ])
                #expect(error.kind == .policy && error.message.contains("\"\(name)\""), "\(error)")
            }
        }
    }

    @Test func arguments_areAsMany_asTheSystemTakes() async throws {
        try await Self.run { bench async throws in
            func count(_ words: Int) -> JSON {
                Self.shell("echo $#", ["arguments": .array(Array(repeating: "x", count: words))])
            }
            #expect(try await bench.result(count(20_001))["output"] == "20000")
            // More than any limit of the stack's size leaves.
            let error = try await bench.failure(count(1_000_000))
            #expect(error.kind == .program && error.message.contains("Argument list too long; pass fewer"), "\(error)")
        }
    }

    @Test func program_leadsASession_withThreeDescriptors_umask077_andNoSignalIgnored() async throws {
        // Like the daemon.
        signal(SIGPIPE, SIG_IGN)
        try await Self.run { bench async throws in
            let ids = try await bench.result(Self.shell("cut -d' ' -f1,5,6 /proc/$$/stat"))["output"]?.string ?? ""
            #expect(Set(ids.split(separator: " ")).count == 1, "\(ids)")
            // The fourth is the directory that is listed.
            let open = Self.lines(
                try await bench.result(["type": "program", "command": ["/bin/ls", "/proc/self/fd"]]))
            #expect(open == ["0", "1", "2", "3"])
            #expect(try await bench.result(Self.shell("umask"))["output"] == "0077")
            let status = try await bench.result(
                ["type": "program", "command": ["/bin/grep", "-E", "Sig(Blk|Ign|Pnd)|ShdPnd", "/proc/self/status"]])
            for line in Self.lines(status) { #expect(line.hasSuffix("\t0000000000000000"), "\(line)") }
            // Where memory runs out it is ended before the daemon, with which it shares that.
            let score = try await bench.result([
                "type": "program", "command": ["/bin/cat", "/proc/self/oom_score_adj"],
            ])
            #expect(score["output"]?.string.flatMap { Int($0) } ?? 0 >= 500)
        }
    }

    @Test func ownDirectory_isEmpty_andRemovedWithAllThatIsInIt() async throws {
        try await Self.run { bench async throws in
            #expect(try await bench.result(Self.shell("ls -A; stat -c %a ."))["output"] == "700")
            let path = try await bench.result(
                Self.shell(
                    "mkdir -p a/b/c; ln -s / a/root; touch a/b/c/x \"$(printf 'a/\\377')\"; mkfifo a/p; chmod 0 a/b/c a; pwd"
                ))
            #expect(!FileManager.default.fileExists(atPath: path["output"]?.string ?? "/"))
            let name = String(repeating: "d", count: 100)
            let deep = "i=0; while [ $i -lt 30 ]; do mkdir \(name) && cd \(name) || exit 1; i=$((i+1)); done; echo $i"
            #expect(try await bench.result(Self.shell(deep))["output"] == "30")
        }
    }

    @Test func configuredDirectory_isWhereItRuns() async throws {
        var entry = ProgramSettings.Entry(command: ["/bin/pwd"])
        entry.directory = "/usr"
        try await Self.run(["here": entry]) { bench async throws in
            #expect(try await bench.result(["type": "program", "program": "here"])["output"] == "/usr")
        }
    }

    @Test func arguments_areHandedOverAsTheyAre_byNoShell() async throws {
        try await Self.run(["echo": .init(command: ["/bin/echo", "-n"])]) { bench async throws in
            #expect(
                try await bench.result(["type": "program", "program": "echo", "arguments": ["$HOME;", "", "ü *"]])[
                    "output"] == "$HOME;  ü *")
        }
    }

    // MARK: - Ends

    @Test func failure_tellsItsEnd_andTheEndOfItsOutput() async throws {
        try await Self.run { bench async throws in
            let error = try await bench.failure(Self.shell("echo no >&2; exit 3"))
            #expect(error.kind == .program)
            #expect(error.program == ["exit": 3, "output": "no\n"])
            #expect(error.message.hasSuffix("exited with 3; look at its output."))
            #expect(!error.isRetryable)
            #expect(error.json["program"] == ["exit": 3, "output": "no\n"])
            #expect(try await bench.failure(Self.shell("exit 75")).isRetryable)
            let both = try await bench.failure(Self.shell("echo yes; echo no >&2; exit 3"))
            #expect(["yes\nno\n", "no\nyes\n"].contains(both.program?["output"]?.string))
            let killed = try await bench.failure(Self.shell("kill -9 $$"))
            #expect(killed.program == ["signal": 9, "output": ""])
            #expect(killed.message.hasSuffix("ended by signal 9; look at its output."))
            #expect(!killed.isRetryable)
            let long = try await bench.failure(Self.shell("seq 100000 >&2; printf 'é%.0s' $(seq 3000) >&2; exit 1"))
            #expect(long.program?["output"]?.string == String(repeating: "é", count: 2048))
            let odd = try await bench.failure(Self.shell("printf 'a\\377b' >&2; exit 1"))
            #expect(odd.program?["output"]?.string == "a\u{FFFD}b")
        }
    }

    @Test func program_thatCannotBeStarted_isKindProgram_andTellsWhy() async throws {
        var entry = ProgramSettings.Entry(command: ["/bin/true"])
        entry.directory = "/nowhere"
        try await Self.run(["lost": entry]) { bench async throws in
            let script = bench.directory + "/script"
            try bench.write(Array("no program".utf8), to: script)
            for (path, reason) in [
                ("/nowhere/x", "No such file or directory"), (script, "Permission denied"),
                ("/usr", "Permission denied"),
            ] {
                let error = try await bench.failure(["type": "program", "command": [.string(path)]])
                #expect(error.kind == .program)
                #expect(error.program == ["output": ""])
                #expect(error.message.contains(path) && error.message.contains(reason), "\(error.message)")
            }
            let error = try await bench.failure(["type": "program", "program": "lost"])
            #expect(error.message.contains("\"lost\"") && error.message.contains("directory could not be entered"))
            // One byte longer than the kernel takes.
            let words = JSON.string(String(repeating: "x", count: 128 << 10))
            #expect(try await bench.failure(Self.shell("true", ["arguments": [words]])).kind == .program)
        }
    }

    @Test func programsThatAreNotAllowed_areRefused() async throws {
        try await Workbench.run { bench async throws in
            #expect(try await bench.failure(Self.shell("true")).kind == .policy)
            #expect(try await bench.failure(["type": "program", "program": "x"]).kind == .invalid)
        }
    }

    @Test func whatIsLeftOfTheGroup_isEnded_andItsOutputDoesNotCount() async throws {
        try await Self.run { bench async throws in
            // The subshell would keep the pipe for long; it ends by SIGTERM, and what it writes then comes too late.
            let script = """
                mkfifo ready
                (trap 'echo late; exit' TERM; echo early; echo > ready; sleep 1000 & wait) & read line < ready
                echo done; exit
                """
            let result = try await bench.result(Self.shell(script))
            #expect(Set(Self.lines(result)) == ["early", "done"])
        }
    }

    /// Says its process id as progress, and ignores SIGTERM.
    private static let stubborn = "trap '' TERM; echo \"{\\\"progress\\\":{\\\"completed\\\":$$}}\"; "

    @Test func whatIgnoresSIGTERM_isKilledAfterFiveSeconds() async throws {
        let clock = NIOAsyncTestingEventLoop()
        try await Self.run(timers: clock) { bench async throws in
            let left = try bench.start(Self.shell("trap '' TERM; sleep 1000 & echo 1; exit"))
            await clock.turn(by: .milliseconds(500)) { left.outcome == nil }
            #expect(try await left.get()["output"] == "1")

            let late = try bench.start(Self.configured(Self.stubborn + "sleep 1000; sleep 1000"), timeout: 3)
            let process = try await Self.progress(of: late)
            await clock.advanceTime(by: .seconds(2))
            #expect(late.outcome == nil && kill(process, 0) == 0)
            await clock.turn(by: .milliseconds(500)) { late.outcome == nil }
            #expect(try await bench.failure(of: late).kind == .timeout)
            // The job ended with the group.
            #expect(kill(-process, 0) != 0 && errno == ESRCH)

            let cancelled = try bench.start(Self.configured(Self.stubborn + "sleep 1000; sleep 1000"))
            let other = try await Self.progress(of: cancelled)
            cancelled.cancel()
            await clock.advanceTime(by: .seconds(4))
            #expect(cancelled.outcome == nil && kill(other, 0) == 0)
            await clock.turn(by: .milliseconds(500)) { cancelled.outcome == nil }
            #expect(try await bench.failure(of: cancelled).kind == .cancelled)
            #expect(kill(-other, 0) != 0 && errno == ESRCH)
        }
    }

    /// Its output is so long that it is kept in a file.
    @Test func restOfTheGroup_doesNotCount_towardsTheTimeout() async throws {
        let clock = NIOAsyncTestingEventLoop()
        try await Self.run(timers: clock) { bench async throws in
            let told = bench.directory + "/told"
            let script = """
                mkfifo ready
                trap '' TERM; sleep 1000 & trap - TERM
                (trap 'touch \(told); exit' TERM; echo > ready; sleep 1000 & wait) &
                head -c 200000 /dev/zero | tr '\\0' a; read line < ready; exit 0
                """
            let running = try bench.start(Self.shell(script), timeout: 3)
            // Only once the program has ended is the rest told to end.
            while access(told, F_OK) != 0, running.outcome == nil { try await Task.sleep(for: .milliseconds(5)) }
            await clock.turn(by: .milliseconds(500)) { running.outcome == nil }
            #expect(try await running.get() == ["exit": 0, "spilled": true, "size": 200_000])
        }
    }

    @Test(arguments: [(3.0, 20.0), (20.0, 3.0), (3.0, nil)])
    func timeout_isTheSmallerOfTheConfiguredAndTheJobs(_ configured: Double, _ job: Double?) async throws {
        let clock = NIOAsyncTestingEventLoop()
        var entry = ProgramSettings.Entry(command: ["/bin/sh", "-c"])
        entry.timeout = configured
        try await Self.run(timers: clock, ["slow": entry]) { bench async throws in
            let script = "echo half done; echo \"{\\\"progress\\\":{\\\"completed\\\":$$}}\"; sleep 1000"
            let source: JSON = ["type": "program", "program": "slow", "arguments": [.string(script)]]
            let running = try bench.start(source, timeout: job)
            let process = try await Self.progress(of: running)
            await clock.advanceTime(by: .milliseconds(2900))
            #expect(running.outcome == nil)
            await clock.advanceTime(by: .milliseconds(200))
            // It hears SIGTERM, so no more time has to pass.
            let error = try await bench.failure(of: running)
            #expect(error.kind == .timeout && error.message.contains("timeout of 3 s"), "\(error.message)")
            #expect(
                error.program?["output"]?.string == "half done\n{\"progress\":{\"completed\":\(process)}}\n")
        }
    }

    /// Waits for the first progress, which is the program's process id.
    static func progress(of running: Deferred<JSON, any Error>) async throws -> pid_t {
        let told = AsyncStream<Int64>.makeStream()
        running.onProgress { told.continuation.yield($0.completed) }
        for await process in told.stream { return pid_t(process) }
        throw CancellationError()
    }

    @Test func closingItsOutput_isNotTheEnd() async throws {
        try await Self.run { bench async throws in
            let error = try await bench.failure(Self.shell("echo 1; exec >&- 2>&-; sleep 0.1; exit 4"))
            #expect(error.program?["exit"] == 4)
        }
    }

    @Test func guardThatIsKilled_takesItsProgramsAlong_andTheNextProgramStartsAnother() async throws {
        try await Self.run { bench async throws in
            let running = try bench.start(
                Self.configured("echo \"{\\\"progress\\\":{\\\"completed\\\":$PPID}}\"; sleep 1000"))
            let process = try await Self.progress(of: running)
            #expect(try String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8) == "deferd-guard\n")
            kill(process, SIGKILL)
            let error = try await bench.failure(of: running)
            #expect(error.kind == .internal && error.isRetryable)
            #expect(try await bench.result(Self.shell("echo 1"))["output"] == "1")
        }
    }

    @Test func missingGuard_isNamed_atTheStartAndByEachProgram() async throws {
        try await Self.run(change: { $0.programs.guardProgram = "/missing/deferd-guard" }) { bench async throws in
            bench.library.removeForgottenPrograms()
            #expect(bench.warnings.messages.contains { $0.contains("/missing/deferd-guard") })
            let error = try await bench.failure(Self.shell("echo 1"))
            #expect(error.kind == .internal && !error.isRetryable)
            #expect(error.message.contains("/missing/deferd-guard"))
        }
    }

    @Test func manyAtOnce_allEnd() async throws {
        try await Self.run { bench async throws in
            let running = try (0..<200).map { try bench.start(Self.shell("echo \($0)"), job: JobID($0)) }
            for (index, one) in running.enumerated() {
                #expect(try await one.get()["output"] == .string("\(index)"))
            }
        }
    }

    /// Their SIGTERM may come before they lead a group, or before they run their program.
    @Test func programsThatAreCancelledAtTheirStart_end_withoutSIGKILL() async throws {
        try await Self.run(timers: NIOAsyncTestingEventLoop()) { bench async throws in
            let running = try (0..<200).map { index in
                try bench.start(["type": "program", "command": ["/bin/sleep", "1000"]], job: JobID(index))
            }
            for one in running {
                one.cancel()
                #expect(try await bench.failure(of: one).kind == .cancelled)
            }
        }
    }

    @Test(.enabled(if: SilentFileSystem.isAvailable, "mounting needs root and FUSE"))
    func programsWhoseFileSystemDoesNotAnswer_delayNoOthers_andAreGivenUp() async throws {
        let (clock, silent) = (NIOAsyncTestingEventLoop(), try SilentFileSystem())
        defer { silent.end() }
        var entry = ProgramSettings.Entry(command: ["/bin/true"])
        entry.directory = silent.path + "/directory"
        try await Self.run(timers: clock, ["lost": entry]) { bench async throws in
            var requests = silent.requests.stream.makeAsyncIterator()
            let entering = try bench.start(["type": "program", "program": "lost"], timeout: 3)
            await requests.next()
            let executing = try bench.start(
                ["type": "program", "command": [.string(silent.path + "/program")]], job: 2)
            #expect(try await bench.result(Self.shell("echo 1"), job: 3)["output"] == "1")
            executing.cancel()
            await clock.advanceTime(by: .seconds(3))
            while entering.outcome == nil || executing.outcome == nil {
                await clock.advanceTime(by: .milliseconds(500))
                try await Task.sleep(for: .milliseconds(20))
            }
            #expect(try await bench.failure(of: entering).kind == .timeout)
            #expect(try await bench.failure(of: executing).kind == .cancelled)
            #expect(try await bench.result(Self.shell("echo 2"), job: 4)["output"] == "2")
        }
    }

    @Test func shutdown_endsPrograms() async throws {
        try await Self.run { bench async throws in
            let running = try bench.start(
                Self.configured("echo \"{\\\"progress\\\":{\\\"completed\\\":$$}}\"; sleep 1000 & wait"))
            let process = try await Self.progress(of: running)
            await bench.library.shutdown()
            #expect(kill(-process, 0) != 0 && errno == ESRCH)
            #expect(try await bench.failure(of: running).kind == .cancelled)
        }
    }
}
