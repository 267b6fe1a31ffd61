import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// The verbs of deferctl for several jobs, for queues and for what people read.
@Suite struct ManyJobsTests {
    @Test func manyJobs_areChangedAtOnce() async throws {
        try await Daemon.run(configuration: "queues: {default: 4, night: 2}") { daemon, wire in
            for index in 1...6 {
                _ = try await wire.submit(.value(1, ["delay": 1000, "tags": [index % 2 == 0 ? "even" : "odd"]]))
            }
            func output(_ words: String, end: Int32 = 0) async throws -> String {
                try await daemon.deferctl(words.split(separator: " ").map(String.init), end: .code(end)).outputText
            }
            #expect(try await output("hold 1-4") == "4 held\n")
            #expect(try await output("--json hold 1-6 --dry-run") == "{\"count\":2,\"skipped\":4}\n")
            let listed = try await output("list 2-9 --tag even --state held")
            #expect(listed.split(separator: "\n").count == 3 && listed.contains("until it is released"))
            #expect(try await output("set --with-tag odd --priority 5") == "3 changed\n")
            #expect(try await wire.call("job.get", .job(3))["priority"] == 5)
            #expect(try await output("set 2 --queue night --label the-second --delay none") == "2 changed\n")
            let second = try await wire.call("job.get", .job(2))
            #expect(second["queue"] == "night" && second["label"] == "the-second" && second["priority"] == 0)
            #expect(try await output("cancel 5 6 99", end: 65) == "2 cancelled, 1 skipped\n")
            #expect(try await output("cancel --tag neither") == "0 cancelled\n")
            #expect(try await output("release --state held") == "4 released\n")
            #expect(try await output("wait --all", end: 2) == "4 succeeded, 2 cancelled\n")
            #expect(try await output("retry 1 --from start").hasPrefix("1 "))
            #expect(try await output("wait 1") == "1 succeeded\n")
            #expect(try await output("remove --all --since 1h") == "6 removed\n")
            #expect(try await output("list") == "")
        }
    }

    @Test func queues_areGivenBackToTheConfiguration() async throws {
        try await Daemon.run(configuration: "queues: {default: 6}") { daemon in
            func limit(_ words: String..., end: Int32 = 0) async throws -> JSON? {
                let text = try await daemon.deferctl(["--json", "queue"] + words, end: .code(end)).outputText
                return try JSON(parsing: Array(text.utf8))["concurrency"]
            }
            #expect(try await limit("set", "default", "--concurrency", "3", "--byte-rate", "2M") == 3)
            _ = try await limit("suspend", "default")
            #expect(try await limit("resume", "default") == 3)
            #expect(try await limit("set", "default", "--default") == 6)
            try await daemon.reload("queues: {default: 7}")
            #expect(try await limit("list") == 7)
            let process = try await daemon.deferctl(["queue", "suspend", "other"], end: .code(65))
            #expect(process.errorText.contains("There is no queue \"other\""))
        }
    }

    @Test func times_areLocal_orUTC() async throws {
        try await Daemon.run { daemon in
            _ = try await daemon.connect().submit(.value(1, ["notBefore": "2100-07-01T12:00:00Z"]))
            func shown(_ words: String...) async throws -> String {
                try await ChildProcess.run(
                    [BuiltProgram.deferctl, "--socket", daemon.socket] + words, environment: ["TZ": "UTC-05:30"]
                ).output
            }
            #expect(try await shown("show", "1").contains("not before 2100-07-01 17:30:00 UTC"))
            #expect(try await shown("--utc", "show", "1").contains("not before 2100-07-01 12:00:00 UTC"))
            #expect(try await shown("--json", "show", "1").contains("2100-07-01T12:00:00.000Z"))
        }
    }

    @Test func socket_isNamed_orThatOfTheUsersOwnDaemon() async throws {
        try await Daemon.run { daemon in
            let runtime = daemon.directory.path + "/run"
            for directory in [runtime, runtime + "/deferd"] { mkdir(directory, 0o700) }
            symlink(daemon.socket, runtime + "/deferd/deferd.sock")
            for (options, variables) in [
                (["--socket", daemon.socket], ["DEFERD_SOCKET": "/nowhere/s", "XDG_RUNTIME_DIR": "/nowhere"]),
                ([], ["DEFERD_SOCKET": daemon.socket, "XDG_RUNTIME_DIR": "/nowhere"]),
                ([], ["DEFERD_SOCKET": "", "XDG_RUNTIME_DIR": runtime]),
            ] {
                let run = try await ChildProcess.run(
                    [BuiltProgram.deferctl] + options + ["info"], environment: variables)
                #expect(run.end == .code(0), "\(variables): \(run.errors)")
            }
        }
    }

    @Test func usage_tellsWhatIsStored() async throws {
        try await Daemon.run { daemon in
            _ = try await daemon.connect().submit(.value(1, ["delay": 1000]))
            let lines = try await daemon.deferctl(["usage"]).outputText.split(separator: "\n")
            #expect(lines.count == 2 && lines[0].hasPrefix("USER") && lines[1].hasSuffix("B"))
        }
    }

    @Test func doctor_tellsThatAReloadWasRefused() async throws {
        try await Daemon.run { daemon in
            try await daemon.reload("limits: {wat: 1}", isRefused: true)
            let found = try await daemon.deferctl(["doctor"], end: .code(1)).outputText
            #expect(found.contains("limits.wat") && found.contains("deferd --check"))
        }
    }

    @Test func watch_tellsOfEnds_byTheDesktop_orInWords() async throws {
        try await Daemon.run { daemon, wire in
            let id = try await wire.submit(.value(1, ["label": "the value"]))
            _ = try await wire.wait(id)
            let told = try await daemon.deferctl(["watch", "--notify", "\(id)"])
            #expect(told.errorText.contains("deferctl: Job \(id) succeeded: the value"))
            let fifo = daemon.directory.path + "/told"
            try #require(mkfifo(fifo, 0o600) == 0)
            _ = try daemon.directory.write(script: "echo \"$*\" > '\(fifo)'", to: "notify-send")
            let reader = try ChildProcess(["/bin/cat", fifo])
            let process = try ChildProcess(
                [BuiltProgram.deferctl, "--socket", daemon.socket, "watch", "--notify", "\(id)"],
                environment: ["PATH": daemon.directory.path + ":/usr/bin:/bin", "DBUS_SESSION_BUS_ADDRESS": "none"])
            #expect(try await process.end() == .code(0))
            #expect(try await reader.end() == .code(0))
            #expect(reader.outputText == "--app-name=deferd -- Job \(id) succeeded the value\n")
        }
    }
}
