import Foundation
import JobModel
import Testing

/// Every method with real input, watches and lists apart.
@Suite struct MethodTests {
    // MARK: - server

    @Test func info_tellsWhatDaemonIs_whenAsked() async throws {
        try await Daemon.run(configuration: "limits:\n  children: 123\n") { daemon in
            let info = try await daemon.connect().call("server.info")
            #expect(info["name"] == "deferd")
            #expect(info["version"]?.string?.isEmpty == false)
            #expect(info["protocol"] == 1)
            #expect(info["pid"]?.int == Int(daemon.pid))
            #expect(Timestamp(rfc3339: info["startedAt"]?.string ?? "") != nil)
            #expect(
                Set(info["sources"]?.array ?? [])
                    == [
                        "url", "download", "json", "list", "each", "value", "error", "timer", "upload", "program",
                        "job",
                    ])
            #expect(
                Set(info["methods"]?.array ?? []) == [
                    "server.info", "server.stats", "server.usage", "server.nodes", "server.backup", "job.submit",
                    "job.get",
                    "job.list", "job.wait", "job.watch", "job.unwatch", "job.cancel", "job.retry", "job.remove",
                    "job.hold",
                    "job.release", "job.set", "job.result", "job.output", "job.explain", "queue.list", "queue.set",
                    "schedule.set", "schedule.get", "schedule.list", "schedule.remove", "schedule.run",
                    "schedule.suspend", "schedule.resume",
                ])
            let defaults: [String: JSON] = [
                "line": 1_048_576, "outbound": 8_388_608, "connections": 1024, "connectionsPerUser": 256,
                "inFlight": 1024, "queuedJobs": 10_000_000, "queuedJobsPerUser": 1_000_000, "schedulesPerUser": 1000,
                "inlineResult": 65_536,
                "body": 67_108_864, "output": 16_777_216, "documents": 67_108_864, "memoryPerUser": 67_108_864,
                "header": 65_536,
                "links": 100, "depth": 16, "nesting": 64, "redirects": 10, "storedPerUser": 2_147_483_648,
                "minimumFree": 67_108_864,
            ]
            for (name, value) in defaults { #expect(info["limits"]?[name] == value, "\(name)") }
            #expect(info["limits"]?["children"] == 123)
            #expect(info["you"] == ["uid": JSON(Int(geteuid())), "admin": true])
        }
    }

    @Test func nodes_areTheDaemonAlone_withoutPostgreSQL() async throws {
        let configuration = """
            node: {name: ada-1}
            programs: {any: false, b: /bin/true, a: [/bin/sh, -c, "echo on; exec sleep 1000"]}
            """
        try await Daemon.run(configuration: configuration) { _, wire in
            let info = try await wire.call("server.info")
            #expect(info["node"] == "ada-1")
            let running = try await wire.submit(["source": ["type": "program", "program": "a"]])
            _ = try await wire.call("job.output", ["job": JSON(running), "wait": 60])
            let nodes = try await wire.call("server.nodes")["nodes"]?.array ?? []
            #expect(nodes.count == 1)
            let node = try #require(nodes.first)
            for member in ["version", "startedAt"] { #expect(node[member] == info[member], "\(member)") }
            #expect(node["node"] == "ada-1" && node["state"] == "running" && node["running"] == 1)
            #expect(node["programs"] == ["a", "b"])
            #expect(node["configuration"]?.string?.count == 16)
            #expect(Timestamp(rfc3339: node["seen"]?.string ?? "") != nil)
        }
    }

    @Test func stats_countJobsAndBytes_whenTheyRan() async throws {
        try await GuidedOrigin.withDaemon({ _, _ in .text("12345") }) { origin, daemon, wire in
            let other = try daemon.connect()
            _ = try await other.call("server.info")
            _ = try await wire.succeed(.fetch(origin.url("/")))
            _ = try await wire.fail(.failure())
            let waiting = try await wire.submit(.value(1, ["delay": 1000]))
            let stopped = try await wire.submit(.value(1, ["delay": 1000]))
            _ = try await wire.call("job.cancel", .job(stopped))
            _ = try await wire.call("job.watch", .job(waiting))
            let stats = try await wire.call("server.stats")
            #expect(
                stats["jobs"] == [
                    "scheduled": 1, "held": 0, "queued": 0, "running": 0, "succeeded": 1, "failed": 1, "cancelled": 1,
                ])
            #expect(stats["totals"]?["submitted"] == 4)
            #expect(stats["connections"] == 2)
            #expect(stats["watches"] == 1)
            #expect(stats["bytes"]?["received"] == 5)
            #expect(stats["uptime"]?.double ?? -1 > 0)
        }
    }

    @Test func stats_countBytes_whileTheyArrive() async throws {
        try await GuidedOrigin.withDaemon { origin, _, wire in
            _ = try await origin.beginDownload(at: wire)
            #expect(try await wire.call("server.stats")["bytes"]?["received"] == 3_000_000)
        }
    }

    // MARK: - submit, get, wait

    @Test func get_showsWholeJob_whenItIsDone() async throws {
        try await Daemon.run { _, wire in
            let spec: JSON = [
                "source": ["type": "value", "value": 1],
                "then": [["then": ["return": "{{input}}"]], ["fail": ["return": 0]]],
                "priority": 7, "key": "k", "tags": ["a", "b"], "label": "L", "timeout": 60, "deadline": 600,
            ]
            let id = try await wire.submit(spec)
            let waited = try await wire.wait(id)
            let job = try await wire.call("job.get", .job(id))
            #expect(job == waited)
            #expect(job["job"]?.int == id)
            #expect(job["state"] == "succeeded")
            for name in ["source", "then", "priority", "key", "tags", "label"] {
                #expect(job[name] == spec[name], "\(name)")
            }
            #expect(job["queue"] == "default")
            #expect(job["owner"]?.int == Int(geteuid()))
            #expect(job["attempt"] == 1)
            #expect(job["links"] == 2)
            #expect(job["result"] == 1)
            for name in ["parent", "children", "notBefore", "error"] { #expect(job[name] == nil, "\(name)") }
            let times = try ["createdAt", "startedAt", "finishedAt"].map { name in
                let text = try #require(job[name]?.string)
                // RFC 3339 in UTC with milliseconds.
                #expect(text.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil, "\(text)")
                return text
            }
            #expect(times == times.sorted())
            let outcomes = try #require(job["outcomes"]?.array)
            #expect(outcomes.map { $0["link"] } == [0, 1], "a skipped link has no outcome")
            for outcome in outcomes {
                #expect(outcome["ok"] == true)
                #expect(outcome["attempts"] == 1)
                #expect(outcome["error"] == nil)
                #expect(Timestamp(rfc3339: outcome["startedAt"]?.string ?? "") != nil)
                #expect(Timestamp(rfc3339: outcome["finishedAt"]?.string ?? "") != nil)
            }
        }
    }

    @Test func wait_isRefused_whenTimeIsOver() async throws {
        try await Daemon.run { _, wire in
            let job = try await wire.submit(.timer(1000))
            for timeout in [0, 0.1] as [JSON] {
                let refusal = try await wire.refusal("job.wait", ["job": JSON(job), "timeout": timeout])
                #expect(refusal.code == -32007)
                #expect(refusal.kind == "timeout")
            }
            let done = try await wire.submit(.value(1))
            _ = try await wire.wait(done)
            #expect(try await wire.call("job.wait", ["job": JSON(done), "timeout": 0])["state"] == "succeeded")
            #expect(try await wire.call("job.wait", ["jobs": []]) == ["jobs": []])
        }
    }

    // MARK: - cancel, retry, remove

    @Test func remove_frees_whenJobIsFinished() async throws {
        try await Daemon.run { _, wire in
            let running = try await wire.submit(.timer(1000))
            let refusal = try await wire.refusal("job.remove", .job(running))
            #expect(refusal.code == -32004)
            #expect(["queued", "running"].contains(refusal.data["state"]))
            let list = try await wire.run(["source": ["type": "list", "jobs": [.failure(), .value(2)]]])
            let id = list["job"]?.int ?? 0
            let children = try await wire.call("job.list", ["parent": JSON(id)])["jobs"]?.array ?? []
            #expect(children.count == 2)
            let child = children.first?["job"]?.int ?? 0
            for method in ["job.remove", "job.retry"] {
                for child in children {
                    #expect(try await wire.refusal(method, .job(child["job"]?.int ?? 0)).code == -32004)
                }
            }
            #expect(try await wire.call("job.remove", .job(id)) == [:])
            for gone in [id, child] {
                #expect(try await wire.refusal("job.get", .job(gone)).code == -32001)
                #expect(try await wire.refusal("job.remove", .job(gone)).kind == "not-found")
            }
        }
    }

    // MARK: - explain

    @Test func explain_showsDefaults_andQueuesNothing() async throws {
        try await Daemon.run { _, wire in
            let explained = try await wire.call(
                "job.explain",
                [
                    "source": ["type": "url", "url": "http://example.org/"],
                    "then": [["then": ["return": 1]], ["finally": ["source": ["type": "timer", "seconds": 1]]]],
                ])
            #expect(explained["queue"] == "default")
            #expect(explained["priority"] == 0)
            #expect(
                explained["retry"] == ["max": 10, "initial": 1, "factor": 2, "maxDelay": 300, "jitter": true])
            #expect(explained["source"]?["method"] == "GET")
            #expect(explained["source"]?["accept"] == "success")
            #expect(explained["then"]?[0]?["link"] == 1)
            #expect(explained["then"]?[1]?["link"] == 2)
            let failing = try await wire.call("job.explain", ["source": ["type": "error"]])
            #expect(failing["source"] == ["type": "error", "kind": "invalid"])
            #expect(try await wire.call("job.list")["jobs"] == [])
            #expect(try await wire.call("server.stats")["totals"]?["submitted"] == 0)
            let refusal = try await wire.refusal("job.explain", ["source": ["type": "url", "url": "ftp://a/"]])
            #expect([-32002, -32602].contains(refusal.code))
            #expect(refusal.pointer == "/source/url")
            let denied = try await wire.refusal("job.explain", .fetch("http://169.254.169.254/"))
            #expect(denied.code == -32002 && denied.kind == "forbidden" && denied.pointer == "/source/url")
        }
    }

    // MARK: - queues

    @Test func queues_areListedAndSet_byAdministrators() async throws {
        try await Daemon.run(configuration: "queues:\n  default: 3\n  slow: 1\n") { _, wire in
            let queues = try await wire.call("queue.list")["queues"]?.array ?? []
            #expect(queues.count == 2)
            #expect(
                queues.contains([
                    "queue": "slow", "concurrency": 1, "perUser": 1, "startRate": nil, "byteRate": nil,
                    "suspended": false, "scheduled": 0, "held": 0, "queued": 0, "running": 0,
                ]))
            #expect(queues.contains { $0["queue"] == "default" && $0["concurrency"] == 3 })
            let set = try await wire.call("queue.set", ["queue": "new", "concurrency": 9, "suspended": true])
            #expect(set["concurrency"] == 9)
            #expect(set["suspended"] == true)
            _ = try await wire.submit(.value(1, ["queue": "new"]))
            _ = try await wire.submit(.value(1, ["queue": "new", "delay": 1000]))
            let new = try await wire.call("queue.list")["queues"]?.array?.first { $0["queue"] == "new" }
            #expect(
                new == [
                    "queue": "new", "concurrency": 9, "perUser": 6, "startRate": nil, "byteRate": nil,
                    "suspended": true,
                    "scheduled": 1, "held": 0, "queued": 1, "running": 0,
                ])
            let refusal = try await wire.refusal("job.submit", .value(1, ["queue": "nowhere"]))
            #expect(refusal.code == -32602)
            #expect(refusal.pointer == "/queue")
        }
    }

    @Test func queueThatIsOneTooMany_isRefused_andNotStored() async throws {
        try await Household.with { household in
            let (daemon, wire) = try await household.serve()
            for number in 1..<1000 { _ = wire.send("queue.set", ["queue": .string("q\(number)")]) }
            for number in 1..<1000 { _ = try await wire.result(number) }
            #expect(try await wire.refusal("queue.set", ["queue": "more"]).code == -32003)
            #expect(try await wire.call("queue.set", ["queue": "q1", "concurrency": 3])["concurrency"] == 3)
            try await daemon.stop()
            let next = try await household.start()
            let queues = try await next.connect().call("queue.list")["queues"]?.array ?? []
            #expect(queues.count == 1000)
            #expect(!queues.contains { $0["queue"] == "more" })
            try await next.stop()
        }
    }
}
