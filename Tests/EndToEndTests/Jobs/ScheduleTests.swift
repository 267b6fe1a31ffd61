import JobModel
import TestSupport
import Testing

/// Schedules over a socket, with a real clock: the tests await jobs, never a time.
@Suite struct ScheduleTests {
    private static let spec: JSON = [
        "source": ["type": "value", "value": "{{schedule/time}}"], "tags": ["tick"],
        "then": [["then": ["return": ["{{schedule/name}}", "{{input}}"]]]],
    ]

    /// The next job with the tag that succeeds.
    private func nextJob(_ wire: Wire) async throws -> JSON {
        try await wire.next("a job of the schedule") { $0.state == "succeeded" }.json["params"]?["snapshot"] ?? .null
    }

    @Test func schedule_submitsOnceForEachTime_overRestartsAndCrashes() async throws {
        try await Household.with { household in
            var (daemon, wire) = try await household.serve()
            _ = try await wire.call("job.watch", ["tag": "tick"])
            let set = try await wire.call("schedule.set", ["schedule": "s", "every": 1, "spec": Self.spec])
            #expect(set["next"]?.string != nil && set["last"] == .null && set["owner"] != nil)
            #expect(set.object?.members.contains { $0.name == "specSize" } == false)
            var keys: [String] = []
            for life in 0..<4 {
                for _ in 0..<2 {
                    let job = try await nextJob(wire)
                    let key = job["key"]?.string ?? job["spec"]?["key"]?.string ?? ""
                    #expect(job["result"]?[0] == "s")
                    #expect(key == "schedule:s:\(job["result"]?[1]?.string ?? "")", "\(job)")
                    keys.append(key)
                }
                if life % 2 == 0 { try await daemon.crash() } else { try await daemon.stop() }
                (daemon, wire) = try await household.serve()
                _ = try await wire.call("job.watch", ["tag": "tick"])
            }
            #expect(Set(keys).count == keys.count)
            #expect(keys == keys.sorted())
            _ = try await wire.call("schedule.remove", ["schedule": "s"])
            #expect(try await wire.refusal("schedule.get", ["schedule": "s"]).code == -32001)
            let all = try await wire.call("job.list", ["tag": "tick", "limit": 1000])["jobs"]?.array ?? []
            let stored = all.compactMap { $0["key"]?.string ?? $0["spec"]?["key"]?.string }
            #expect(Set(stored).count == all.count && Set(keys).isSubset(of: stored))
            try await daemon.stop()
        }
    }

    @Test func reboot_submitsOnceForEachStartOfTheMachine_fromTheNextOn() async throws {
        try await Household.with { household in
            for (start, jobs) in [(1, 0), (1, 0), (2, 1), (2, 1), (3, 2), (4, 2)] {
                let boot = ["DEFERD_BOOT": "the boot of number \(start)"]
                let (daemon, wire) = try await household.serve(environment: boot)
                if jobs == 0 {
                    let set = try await wire.call(
                        "schedule.set", ["schedule": "s", "calendar": " @reboot\t", "spec": Self.spec])
                    #expect(set["calendar"] == "@reboot" && set["next"] == .null && set["zone"] == nil)
                }
                try await wire.eventually { $0["jobs"]?["succeeded"]?.int ?? 0 == jobs }
                // What a suspended one misses is dropped.
                if start == 3 { _ = try await wire.call("schedule.suspend", ["schedule": "s"]) }
                if start == 4 { _ = try await wire.call("schedule.resume", ["schedule": "s"]) }
                if start % 2 == 0 { try await daemon.crash() } else { try await daemon.stop() }
            }
            let (daemon, wire) = try await household.serve(environment: ["DEFERD_BOOT": "the boot of number 4"])
            let all = try await wire.call("job.list", ["tag": "tick"])["jobs"]?.array ?? []
            let keys = Set(all.compactMap { $0["key"]?.string ?? $0["spec"]?["key"]?.string })
            #expect(keys == ["schedule:s:the boot of number 2", "schedule:s:the boot of number 3"])
            #expect(try await wire.call("schedule.get", ["schedule": "s"])["submitted"] == 2)
            try await daemon.stop()
        }
    }

    @Test func deferctl_addsACommand_whichRunsInItsDirectory() async throws {
        try await Daemon.run(flags: ["--instance", "user"]) { daemon in
            func deferctl(_ words: String...) async throws -> String {
                let run = try await ChildProcess.run(
                    [BuiltProgram.deferctl, "--socket", daemon.socket] + words, environment: ["TZ": "Europe/Berlin"],
                    directory: daemon.directory.path)
                #expect(run.end == .code(0), "\(run.errors)")
                return run.output
            }
            _ = try await deferctl("schedule", "add", "s", "--daily", "--", "sh", "-c", "echo $PWD '{{schedule/name}}'")
            let schedule = try JSON(parsing: try await deferctl("schedule", "show", "s", "--json"))
            #expect(schedule["zone"] == "Europe/Berlin" && schedule["calendar"] == "@daily")
            let job = try await deferctl("schedule", "run", "s").dropLast()
            _ = try await deferctl("wait", String(job))
            #expect(try await deferctl("output", String(job)) == "\(daemon.directory.path) {{schedule/name}}\n")
        }
    }

    @Test func deferctl_addsAConfiguredProgram_alsoInAUsersInstance() async throws {
        let configuration = "programs:\n  greet: {command: [/bin/echo, hello]}\n"
        for instance in ["user", "system"] {
            try await Daemon.run(configuration: configuration, flags: ["--instance", instance]) { daemon in
                func source(_ line: String...) async throws -> JSON? {
                    _ = try await daemon.deferctl(["schedule", "add", "s", "--daily", "--"] + line)
                    return try await daemon.connect().call("schedule.get", ["schedule": "s"])["spec"]?["source"]
                }
                let greeting = try await source("greet", "you")
                #expect(greeting?["program"] == "greet" && greeting?["arguments"] == ["you"], "\(instance)")
                if instance == "user" {
                    #expect(try await source("sh", "-c", "true")?["command"]?[1] == "-c")
                } else {
                    let unknown = try await daemon.deferctl(
                        ["schedule", "add", "s", "--daily", "--", "sh"], end: .code(65))
                    #expect(unknown.errorText.contains("\"sh\""), "\(unknown.errorText)")
                }
            }
        }
    }

    @Test func deferctl_addsInTheLocalZone_alsoWithUTC() async throws {
        try await Daemon.run { daemon in
            let wire = try daemon.connect()
            for (options, zone, name) in [
                ([], "", "local"), ([], ":/etc/localtime", "local"), (["--utc"], "Europe/Berlin", "Europe/Berlin"),
                (["--zone", "UTC"], "CET-1CEST", "UTC"),
            ] as [([String], String, String)] {
                let run = try await ChildProcess.run(
                    [BuiltProgram.deferctl, "--socket", daemon.socket, "schedule", "add", "s", "--daily"] + options
                        + [#"{"source":{"type":"value","value":1}}"#], environment: ["TZ": zone])
                #expect(run.end == .code(0), "\(run.errors)")
                #expect(try await wire.call("schedule.get", ["schedule": "s"])["zone"]?.string == name)
            }
        }
    }

    @Test func deferctl_addsShowsRunsAndRemovesSchedules() async throws {
        try await Daemon.run { daemon in
            func deferctl(_ words: String..., end: ChildProcess.End = .code(0)) async throws -> String {
                let process = try await daemon.deferctl(["schedule"] + words, end: end)
                return end == .code(0) ? process.outputText : process.errorText
            }
            func shown() async throws -> JSON { try JSON(parsing: await deferctl("show", "nightly", "--json")) }
            let spec = #"{"source":{"type":"value","value":"{{schedule/name}}"},"tags":["tick"]}"#
            _ = try await deferctl(
                "add", "nightly", "--calendar", " @daily ", "--zone", "Europe/Berlin", "--catch-up", "all",
                "--suspended",
                spec)
            let added = try await shown()
            #expect(added["suspended"] == true && added["catchUp"] == "all" && added["zone"] == "Europe/Berlin")
            #expect(added["next"] == .null && added["spec"]?["tags"] == ["tick"])
            _ = try await deferctl("resume", "nightly")
            #expect(try await shown()["next"]?.string?.hasSuffix(":00:00.000Z") == true)
            #expect(try await deferctl("list").contains("nightly"))
            _ = try await deferctl("run", "nightly")
            let wire = try daemon.connect()
            let jobs = try await wire.call("job.list", ["tag": "tick"])["jobs"]?.array ?? []
            #expect(jobs.count == 1)
            #expect(try await wire.wait(jobs.first?["job"]?.int ?? 0)["result"] == "nightly")
            _ = try await deferctl("suspend", "nightly")
            #expect(try await shown()["suspended"] == true)
            let flaw = try await deferctl("add", "bad", "--calendar", "61 * * * *", spec, end: .code(65))
            #expect(flaw.contains("61"), "\(flaw)")
            _ = try await deferctl("remove", "nightly")
            #expect(try await deferctl("show", "nightly", end: .code(65)).contains("nightly"))
        }
    }

    private static let wrong: [(params: String, pointer: String)] = [
        ("{}", "/schedule"), (#"{"schedule":"a b"}"#, "/schedule"), (#"{"schedule":"s"}"#, "/spec"),
        (#"{"schedule":"s","spec":{}}"#, "/calendar"),
        (#"{"schedule":"s","spec":{},"calendar":"* * * * *"}"#, "/spec/source"),
        (#"{"schedule":"s","spec":{"source":{"type":"value","value":1}},"every":0.5}"#, "/every"),
        (#"{"schedule":"s","spec":{"source":{"type":"value","value":1}},"every":1e300}"#, "/every"),
        (#"{"schedule":"s","spec":{"source":{"type":"value","value":1}},"every":1,"calendar":"@daily"}"#, "/every"),
        (#"{"schedule":"s","spec":{"source":{"type":"value","value":1}},"every":1,"zone":"UTC"}"#, "/zone"),
        (#"{"schedule":"s","spec":{"source":{"type":"value","value":1}},"calendar":"0 0 31 2 *"}"#, "/calendar"),
        (
            #"{"schedule":"s","spec":{"source":{"type":"value","value":1}},"calendar":"@daily","zone":"Nowhere"}"#,
            "/zone"
        ),
        (
            #"{"schedule":"s","spec":{"source":{"type":"value","value":1}},"calendar":"@daily","zone":"../../../etc/passwd"}"#,
            "/zone"
        ),
        (
            #"{"schedule":"s","spec":{"source":{"type":"value","value":1}},"calendar":"@daily","zone":"right/Europe/Berlin"}"#,
            "/zone"
        ),
        (
            #"{"schedule":"s","spec":{"source":{"type":"value","value":1}},"calendar":"@daily","catchUp":"no"}"#,
            "/catchUp"
        ),
        (#"{"schedule":"s","spec":{"source":{"type":"value","value":1}},"calendar":"@daily","overlap":1}"#, "/overlap"),
        (#"{"schedule":"s","spec":{"source":{"type":"value","value":1},"queue":"no"},"every":1}"#, "/spec/queue"),
        (#"{"schedule":"s","spec":{"source":{"type":"value","value":1}},"every":1,"more":1}"#, "/more"),
    ]

    @Test func set_isRefused_withThePointer() async throws {
        try await Daemon.run { _, wire in
            for (params, pointer) in Self.wrong {
                let refusal = try await wire.refusal("schedule.set", try JSON(parsing: params))
                #expect(refusal.code == -32602 && refusal.pointer == pointer, "\(refusal)")
            }
        }
    }

    @Test func limit_isConfigured_andReloaded() async throws {
        try await Daemon.run(configuration: "limits:\n  schedulesPerUser: 1\n") { daemon, wire in
            #expect(try await wire.call("server.info")["limits"]?["schedulesPerUser"] == 1)
            func set(_ name: String) -> JSON { ["schedule": .string(name), "every": 9999, "spec": Self.spec] }
            _ = try await wire.call("schedule.set", set("a"))
            _ = try await wire.call("schedule.set", set("a"))
            #expect(try await wire.refusal("schedule.set", set("b")).code == -32003)
            try await daemon.reload("limits:\n  schedulesPerUser: 2\n")
            _ = try await wire.call("schedule.set", set("b"))
        }
    }
}
