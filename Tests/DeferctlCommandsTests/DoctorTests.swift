import Glibc
import JobModel
import Testing

@testable import DeferctlCommands

@Suite struct DoctorTests {
    private func info(_ members: JSON = [:]) -> JSON {
        var object: JSONObject = [
            "name": "deferd", "version": "1.0", "protocol": 1, "pid": 7,
            "limits": ["queuedJobs": 1000, "queuedJobsPerUser": 100, "connections": 50, "connectionsPerUser": 10],
            "you": ["uid": 1000, "admin": false],
        ]
        for member in members.object?.members ?? [] { object[member.name] = member.value }
        return .object(object)
    }

    @Test func identity_tellsOtherVersions() {
        #expect(Diagnosis.identity(info(), client: "1.0", user: "ada").map(\.level) == [.ok, .ok])
        #expect(Diagnosis.identity(info(), client: "1.1", user: "ada").map(\.level) == [.note, .ok])
    }

    @Test func advice_isForTheUsersUnit_ofAUsersInstance() throws {
        for (instance, command) in [("system", "systemctl r"), ("user", "systemctl --user r")] {
            let info = info([
                "instance": .string(instance), "version": "0.9", "configuration": ["refused": "Line 2 is wrong."],
            ])
            let findings = [Diagnosis.identity(info, client: "1.0", user: "ada")[0], Diagnosis.configuration(info)]
            for finding in findings { #expect(finding?.next?.contains(command) == true, "\(finding?.next ?? "")") }
        }
    }

    @Test func limits_warn_whenAlmostFull() {
        let stats: JSON = ["jobs": ["scheduled": 30, "held": 10, "queued": 50], "connections": 2]
        #expect(Diagnosis.limits(info(), stats).map(\.level) == [.warning, .ok])
        // An administrator sees the jobs of all, and the limit of all.
        #expect(Diagnosis.limits(info(["you": ["admin": true]]), stats).map(\.level) == [.ok, .ok])
        let one: JSON = ["jobs": ["queued": 1], "connections": 1]
        #expect(
            Diagnosis.limits(info(), one).map(\.message) == [
                "1 job waits; limits.queuedJobsPerUser is 100.",
                "1 connection is open; limits.connectionsPerUser is 10.",
            ])
        #expect(Diagnosis.limits([:], [:]) == [])
    }

    @Test func storage_isAsTheDaemonTells() {
        #expect(Diagnosis.storage([:]) == nil)
        #expect(Diagnosis.storage(["storage": ["free": 1000, "minimumFree": 100]])?.level == .ok)
        #expect(Diagnosis.storage(["storage": ["free": 150, "minimumFree": 100]])?.level == .warning)
        #expect(Diagnosis.storage(["storage": ["free": 1000, "failure": "disk full"]])?.level == .error)
        #expect(Diagnosis.storage(["storage": ["free": 1, "minimumFree": JSON(Int.max)]])?.level == .warning)
    }

    @Test func stored_warns_whenAUserHasAlmostReachedTheLimit() {
        let users: [JSON] = [["uid": 1, "name": "ada", "stored": 90], ["uid": 2, "name": "bob", "stored": 89]]
        let findings = Diagnosis.stored(users, info(["limits": ["storedPerUser": 100]]))
        #expect(findings.map(\.level) == [.warning] && findings[0].message.contains("ada"))
    }

    @Test func nodes_warn_whenTheyDifferOrAreAway() {
        func node(_ name: String, _ state: String, _ version: String, _ configuration: String) -> JSON {
            [
                "node": .string(name), "state": .string(state), "version": .string(version),
                "configuration": .string(configuration), "seen": "2026-11-25T05:00:00.000Z",
            ]
        }
        let alike = [node("a", "running", "1", "c"), node("b", "running", "1", "c"), node("c", "stopped", "0", "d")]
        #expect(Diagnosis.nodes([alike[0]]) == [])
        #expect(Diagnosis.nodes(alike).map(\.level) == [.ok])
        let others = Diagnosis.nodes(alike + [node("d", "running", "2", "c"), node("e", "running", "2", "e")])
        #expect(others.map(\.level) == [.warning, .warning])
        #expect(others[0].message == "The nodes have different versions: 1 (a, b), 2 (d, e).")
        #expect(others[1].message == "The nodes have different settings: c (a, b, d), e (e).")
        let away = Diagnosis.nodes(alike + [node("d", "away", "1", "c")])
        #expect(away.map(\.level) == [.warning] && away[0].message.contains("node d has not been"))
    }

    @Test func nodes_areListed_withTheirPrograms() throws {
        let lines = NodeTable.lines([
            [
                "node": "a\u{1B}", "state": "running", "version": "1", "running": 7, "programs": ["*"],
                "configuration": "c", "seen": "2026-11-25T05:00:00.000Z", "startedAt": "2026-11-25T04:00:00.000Z",
            ],
            ["node": "b", "state": "away", "version": "1", "running": 0, "programs": ["x", "y"]],
        ])
        #expect(lines.count == 3 && lines[1].hasSuffix("  *") && lines[2].hasSuffix("  x y"))
        let seen = try #require(Timestamp(rfc3339: "2026-11-25T05:00:00.000Z"))
        #expect(lines[1].contains("  running        7  1        \(Quantities.time(seen))"))
        #expect(!lines[1].contains("\u{1B}"))
    }

    @Test func surroundings_warn_whenTheyHarmSchedulesOrPrograms() {
        #expect(Diagnosis.clock(nil) == nil && Diagnosis.clock("NTPSynchronized=yes\n") == nil)
        #expect(Diagnosis.clock("NTPSynchronized=no\n")?.level == .warning)
        let isRunning: (String) -> Bool = { $0 == "/run/systemd/system" }
        #expect(Diagnosis.lingering(user: "ada", schedules: 1, exists: isRunning)?.next?.hasSuffix(" ada") == true)
        #expect(Diagnosis.lingering(user: "ada", schedules: 0, exists: isRunning) == nil)
        #expect(Diagnosis.lingering(user: "ada", schedules: 1) { _ in true } == nil)
        let hard = Self.units.replacing("NRestarts=0", with: "NRestarts=0\nMemoryMax=1000\nNoNewPrivileges=no")
        #expect(ServiceUnits(showing: hard, isUser: true).hardening?.message.contains("sets MemoryMax,") == true)
        #expect(ServiceUnits(showing: hard, isUser: false).hardening == nil)
        #expect(ServiceUnits(showing: Self.units, isUser: true).hardening == nil)
    }

    @Test func disks_warn_whenJobsWaitForOne() {
        let error: JSON = ["kind": "storage", "message": "\"/d\" has 5 bytes free; make room."]
        let waiting = job(7, "scheduled", ["error": error])
        let others = [
            job(7, "failed", ["error": error]), job(7, "scheduled", ["error": ["kind": "network"]]),
            job(7, "scheduled"),
        ]
        #expect(Diagnosis.disks(others).level == .ok)
        let one = Diagnosis.disks([waiting])
        #expect(one.level == .warning && one.message.hasPrefix("1 job waits"))
        #expect(one.message.hasSuffix("Job 7: \"/d\" has 5 bytes free; make room."))
        #expect(one.next?.hasSuffix("deferctl show 7") == true)
        #expect(Diagnosis.disks([waiting, waiting]).message.hasPrefix("2 jobs wait"))
    }

    @Test func queues_warn_whenSuspendedWithJobs() {
        let open: JSON = ["queue": "a", "suspended": false, "queued": 5]
        #expect(Diagnosis.queues([open]).map(\.level) == [.ok])
        let suspended: JSON = ["queue": "b", "suspended": true, "queued": 5]
        #expect(Diagnosis.queues([open, suspended]).map(\.level) == [.warning])
        #expect(Diagnosis.queues([open, suspended])[0].next?.hasSuffix("deferctl queue resume b") == true)
        #expect(Diagnosis.queues([["queue": "b", "suspended": true, "queued": 0]]).map(\.level) == [.note])
        let one = Diagnosis.queues([["queue": "b", "suspended": true, "queued": 1]])[0]
        #expect(one.message == "The queue b is suspended, and 1 job waits in it.")
    }

    @Test func failures_tellTheNewest_andHowToSeeThem() {
        #expect(Diagnosis.failures([], now: noon).map(\.level) == [.ok])
        let failed = (1...9).map { job($0, "failed", ["error": ["kind": "dns", "message": "No.\u{1B}"]]) }
        let findings = Diagnosis.failures(failed, now: noon)
        #expect(findings.count == Diagnosis.mostFailures)
        #expect(findings[0].next == "deferctl show 1")
        #expect(!findings[0].lines(TextFormat()).joined().contains("\u{1B}"))
    }

    private static let units = """
        Id=deferd.service
        LoadState=loaded
        ActiveState=active
        SubState=running
        Result=success
        NRestarts=0

        Id=deferd.socket
        LoadState=loaded
        ActiveState=active
        SubState=running
        """

    @Test(arguments: [
        ("", "", true, Finding.Level.ok), ("NRestarts=0", "NRestarts=3", true, .warning),
        ("=active\nSubState=running\nResult=success", "=failed\nSubState=failed\nResult=exit-code", true, .warning),
        ("=active\nSubState=running\nResult=success", "=failed\nSubState=failed\nResult=exit-code", false, .error),
        ("LoadState=loaded", "LoadState=not-found", true, .note),
        ("LoadState=loaded", "LoadState=masked", true, .error),
        ("=active\nSubState=running\nResult", "=inactive\nSubState=dead\nResult", true, .note),
        ("=active", "=inactive", false, .error),
    ])
    func units_areRead(from: String, to: String, isReachable: Bool, level: Finding.Level) {
        let text = from.isEmpty ? Self.units : Self.units.replacing(from, with: to)
        let finding = ServiceUnits(showing: text, isUser: false).finding(isReachable: isReachable)
        #expect(finding.level == level)
        if level.isTrouble { #expect(finding.next != nil) }
    }

    @Test func programs_areRead_orGivenUp() {
        #expect(ProgramOutput.read("echo a") == "a\n")
        #expect(ProgramOutput.read("false") == nil)
        #expect(ProgramOutput.read("no-such-program-of-deferctl") == nil)
        #expect(ProgramOutput.read("sleep 1000", seconds: 0.01) == nil)
    }

    @Test func denied_tellsWhatToDo_byGroup() throws {
        func next(_ group: String?) -> String { SocketGroup.nextForDenied("ada", group: group) }
        #expect(next(nil).contains("Only its owner"))
        #expect(next("deferd").contains("adduser ada deferd") && next("deferd").contains("log in again"))
        #expect(!next("root").contains("adduser"))
        let file = try TemporaryFile([])
        #expect(chmod(file.path, 0o600) == 0 && SocketGroup.name(at: file.path) == nil)
        #expect(chmod(file.path, 0o660) == 0 && SocketGroup.name(at: file.path) != nil)
    }
}

@Suite struct UnknownVerbTests {
    @Test(arguments: [
        ["list"], ["--json", "list"], ["--socket", "x", "list"], ["--color=always", "top"], [], ["--help"],
        ["schedule"], ["schedule", "--json"], ["schedule", "show", "ad"], ["schedule", "--socket", "x", "show"],
        ["help"], ["help", "list"], ["help", "schedule", "add"], ["--socket"],
        ["--generate-completion-script", "bash"],
    ])
    func refuse_letsVerbsThrough(arguments: [String]) throws {
        try UnknownVerb.refuse(arguments)
    }

    @Test(arguments: [
        (["--json", "lsit"], "\"lsit\" of deferctl. Did you mean list? See all with: deferctl --help"),
        (
            ["--color", "never", "schedule", "remvoe", "x"],
            "\"remvoe\" of deferctl schedule. Did you mean remove? See all with: deferctl schedule --help"
        ),
        (["help", "docter"], "\"docter\" of deferctl. Did you mean doctor? See all with: deferctl --help"),
        (["zzzzzzz"], "\"zzzzzzz\" of deferctl. See all with: deferctl --help"),
    ])
    func refuse_namesTheVerbThatWasMeant(arguments: [String], message: String) {
        let failure = #expect(throws: CommandFailure.self) { try UnknownVerb.refuse(arguments) }
        #expect(failure == CommandFailure(.usage, "There is no verb \(message)"))
    }

    @Test(
        arguments: [
            (["list", "--stat", "failed"], "--stat of deferctl list. Did you mean --state?"),
            (["schedule", "add", "q", "--daily", "--queue", "one", "--", "x"], "--queue of deferctl schedule add."),
            (["--jsno", "list"], "--jsno of deferctl list. Did you mean --json?"),
            (["set", "3", "--no-notify", "--utc", "--state=held", "--", "--x"], nil), (["run", "ls", "--x"], nil),
        ] as [([String], String?)])
    func option_namesTheFirstThatTheVerbLacks(arguments: [String], message: String?) {
        let failure = UnknownVerb.option(in: arguments)
        #expect((failure == nil) == (message == nil))
        #expect(failure?.message.hasPrefix("There is no option \(message ?? "")") != false, "\(failure?.message ?? "")")
    }
}
