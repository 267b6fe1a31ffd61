import Foundation
import Glibc
import JobModel
import TestOrigin
import TestSupport
import Testing

/// A configuration that is read again while the daemon serves.
@Suite struct ReloadTests {
    @Test func limits_changeForTheNextCall_ofAnOpenConnection() async throws {
        try await Daemon.run(configuration: "limits:\n  queuedJobsPerUser: 10\n") { daemon, wire in
            let early = try await wire.submit(.value(1, ["delay": 1000]))
            let text = JSON.string(String(repeating: "x", count: 3000))
            let long: JSON = ["source": ["type": "value", "value": text]]
            _ = try await wire.succeed(long)
            try await daemon.reload("limits:\n  queuedJobsPerUser: 1\n  line: 2048\n  links: 0\n  inFlight: 1\n")
            #expect(try await wire.refusal("job.submit", .value(1)).code == -32003, "one is queued already")
            let line = Wire.request(900, "job.submit", long)
            wire.sendLine(line)
            let refusal = try await wire.next("refusal of a long line") { $0.json["error"] != nil }
            #expect(refusal.json["error"]?["data"]?["kind"] == "line-too-long")
            _ = try await wire.call("job.cancel", .job(early))
            let linked = JSON.value(1 as JSON, ["then": [["then": ["return": 2]]]])
            #expect(try await wire.refusal("job.submit", linked).code == -32602)
            let limits = try await wire.call("server.info")["limits"]
            #expect(limits?["line"] == 2048 && limits?["links"] == 0 && limits?["inFlight"] == 1)
            // And back, for the same connection.
            try await daemon.reload("")
            #expect(try await wire.succeed(linked) == 2)
            _ = try await wire.succeed(long)
        }
    }

    @Test func policy_changesForWhatStartsAfterwards_andWhatRunsGoesOn() async throws {
        try await GuidedOrigin.withDaemon({ request, _ in
            request.path == "/slow" ? nil : .text("here")
        }) { origin, daemon, wire in
            // Its link is checked again when it starts.
            let second = JSON.fetch(origin.url("/second"))
            let chained = try await wire.submit(
                .fetch(origin.url("/slow"), ["then": [["then": second]], "retry": ["max": 0]]))
            let slow = try await origin.exchange("/slow")
            try await daemon.reload("policy:\n  denyAddresses: [127.0.0.0/8]\nhttp:\n  userAgent: other/2\n")
            let refusal = try await wire.refusal("job.submit", .fetch(origin.url("/later")))
            #expect(refusal.code == -32002 && refusal.kind == "forbidden")
            slow.answer(.text("slow"))
            let job = try await wire.wait(chained)
            #expect(job["outcomes"]?.array?.first?["ok"] == true, "what ran goes on as it began")
            #expect(job["error"]?["kind"] == "policy" && job["error"]?["link"] == 1)
            #expect(origin.count("/second") == 0)
            try await daemon.reload("http:\n  userAgent: other/2\n")
            _ = try await wire.succeed(.fetch(origin.url("/third")))
            let third = try await origin.arrival(of: "/third")
            #expect(third.headers["user-agent"] == "other/2")
        }
    }

    /// It was allowed by rules that no longer apply.
    @Test func keptConnection_isNotUsed_whenItsAddressIsDeniedByNow() async throws {
        try await GuidedOrigin.withDaemon({ _, _ in .text("new") }) { origin, daemon, wire in
            let spec = JSON.fetch(origin.url("/x", host: "localhost"))
            _ = try await wire.succeed(spec)
            try await daemon.reload("policy: {denyAddresses: [127.0.0.0/8, \"::1\"]}\n")
            #expect(try await wire.fail(spec)["kind"] == "policy")
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func queues_change_butForThoseThatAnAdministratorSet() async throws {
        try await Household.with { household in
            var daemon = try await household.start(configuration: "queues:\n  a: 1\n  b: 1\n")
            let wire = try daemon.connect()
            _ = try await wire.call("queue.set", ["queue": "b", "concurrency": 7])
            let yaml = "queues:\n  default: 2\n  a: 5\n  b: 5\n  c: 5\n"
            func concurrencies(_ wire: Wire) async throws -> [JSON?] {
                try await wire.call("queue.list")["queues"]?.array?.map { $0["concurrency"] } ?? []
            }
            try await daemon.reload(yaml)
            #expect(try await concurrencies(wire) == [5, 7, 5, 2])
            try await daemon.stop()
            daemon = try await household.start(configuration: yaml)
            #expect(try await concurrencies(daemon.connect()) == [5, 7, 5, 2], "a start says the same")
            try await daemon.stop()
        }
    }

    @Test func queue_takesNothingNew_onceTheFileHasItNoMore() async throws {
        try await Household.with { household in
            var (daemon, wire) = try await household.serve(configuration: "queues:\n  a: 2\n")
            let ids = [
                try await wire.submit(.timer(1000, ["queue": "a"])),
                try await wire.submit(.timer(1000, ["queue": "a"])),
            ]
            func expectLeft(_ concurrency: JSON) async throws {
                let own = JSON.value(1, ["queue": "a"])
                for method in ["job.submit", "job.explain"] {
                    #expect(try await wire.refusal(method, own).code == -32602)
                    let list: JSON = ["source": ["type": "list", "jobs": [.value(1), own]]]
                    let refusal = try await wire.refusal(method, list)
                    #expect(refusal.code == -32602 && refusal.data["pointer"] == "/source/jobs/1/queue")
                }
                let queues = try await wire.call("queue.list")["queues"]?.array ?? []
                #expect(queues.map { $0["queue"] } == ["a", "default"] && queues.first?["concurrency"] == concurrency)
                for id in ids { #expect(try await wire.call("job.get", .job(id))["state"] == "running") }
            }
            try await daemon.reload("")
            try await expectLeft(1)
            try await daemon.stop()
            (daemon, wire) = try await household.serve(configuration: "")
            try await expectLeft(1)
            _ = try await wire.call("queue.set", ["queue": "a", "concurrency": 3])
            _ = try await wire.succeed(.value(1, ["queue": "a"]))
            try await daemon.stop()
        }
    }

    @Test func badFile_changesNothing_andSaysWhy() async throws {
        try await Daemon.run(configuration: "limits:\n  inFlight: 7\n") { daemon, wire in
            for (yaml, location, key) in [
                ("limits:\n  inFlight: 9\n  links: none\n", "deferd.yaml:3", "limits.links"),
                ("log:\n  level: debug\naccess:\n  adminGroup: no-such-group\n", "deferd.yaml:4", "access.adminGroup"),
                ("limits: {inFlight: 9", "deferd.yaml:2", "expected"),
            ] {
                try await daemon.reload(yaml, isRefused: true)
                let line = try #require(daemon.process.errorText.split(separator: "\n").last)
                #expect(line.contains(location) && line.contains(key), "\(line)")
                try await daemon.status(containing: location)
                #expect(try await wire.call("server.info")["limits"]?["inFlight"] == 7)
            }
            try await daemon.reload("limits:\n  inFlight: 9\n")
            #expect(try await wire.call("server.info")["limits"]?["inFlight"] == 9)
        }
    }

    /// The manual says which keys need a restart; the daemon reports exactly these when all change.
    @Test func manual_namesTheKeysThatWaitForARestart() async throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let manual = try String(contentsOf: root.appendingPathComponent("config/man/deferd.yaml.5"), encoding: .utf8)
        var documented: [String] = []
        var keys: [String] = []
        for entry in manual.components(separatedBy: "\n.It Cm ").dropFirst() {
            let key = String(entry.prefix { $0 != " " })
            keys.append(key)
            let text = entry.components(separatedBy: "\n.El").first ?? ""
            if text.contains("\nChanges take effect at a restart.") { documented.append(key) }
        }
        #expect(keys.count > 35)
        try await Household.with { household in
            // Not by flags, which would win over the file.
            let other = household.directory.path + "/other"
            mkdir(other, 0o755)
            let daemon = try await household.start()
            // A build without libpq refuses any store but its own.
            let hasPostgreSQL = Files.exists("/usr/include/postgresql/libpq-fe.h")
            let yaml = """
                socket:
                  mode: "0600"
                  group: games
                \(hasPostgreSQL ? "state: {store: \"postgresql://localhost/none\"}" : "")
                node: {name: other, lease: 7, statementTimeout: 7}
                downloads:
                  roots: [\(other)]
                  minimumFree: 1
                queues:
                  default: 3
                limits: {line: 70000, outbound: 70000, connections: 7, connectionsPerUser: 7, inFlight: 7, queuedJobs: 7,
                  queuedJobsPerUser: 7, storedPerUser: 700000, inlineResult: 7, body: 7000, documents: 1048577, memoryPerUser: 2000000,
                  header: 2000, children: 7, links: 7, depth: 7}
                http:
                  perHost: 7
                  connectTimeout: 7
                  idleTimeout: 7
                  lowSpeed: {bytes: 7, seconds: 7}
                  retryAfter: 7
                  redirects: 7
                  retry: {max: 7, initial: 7, factor: 7, maxDelay: 7, jitter: false}
                  proxy: socks5://localhost:7
                  noProxy: [a]
                  userAgent: other/2
                policy: {schemes: [http], allowHosts: [localhost], denyHosts: [a], denyAddresses: [10.0.0.0/8], allowAddresses: [10.0.0.1]}
                retention: {age: 7, count: 7, bytes: 7}
                access:
                  adminGroup: games
                log:
                  level: notice
                """
            try await daemon.reload(yaml)
            // The last of them; warnings come in the order of the keys.
            try await daemon.process.line(containing: "downloads.roots")
            let told = daemon.process.errorText.split(separator: "\n").filter { $0.contains("waits for a restart") }
                .compactMap { $0.split(separator: "key=").last.map(String.init) }
            // Flags of the harness win over the file.
            let byFlag = ["socket.path", "state.directory", "downloads.directory"]
            let unknown = hasPostgreSQL ? [] : ["state.store"]
            #expect(Set(told).union(byFlag + unknown) == Set(documented))
            try await daemon.status(containing: "wait for a restart")
            try await daemon.stop()
        }
    }
}
