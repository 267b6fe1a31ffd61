import Foundation
import Glibc
import JobModel
import TestOrigin
import TestSupport
import Testing

/// Several daemons that share a PostgreSQL database, as nodes of one queue.
@Suite(.enabled(if: Nodes.obstacle == nil, Nodes.obstacle)) struct NodesTests {
    @Test func everything_isSeenAndDone_fromEveryNode() async throws {
        try await Nodes.with(2) { nodes, wires in try await everythingIsSeenAndDone(&nodes, wires) }
    }

    /// A pooler may give each transaction another session of the server.
    @Test(
        .enabled(if: Files.exists("/usr/sbin/pgbouncer"), "PgBouncer is not installed; nodes are not tested behind it.")
    )
    func everything_isSeenAndDone_behindAPooler() async throws {
        let cluster = try #require(PostgreSQLCluster.shared)
        let address = try cluster.makeDatabase()
        let directory = try TemporaryDirectory()
        let settings = """
            [databases]
            * = host=\(cluster.directory.path) user=postgres
            [pgbouncer]
            unix_socket_dir = \(directory.path)
            listen_port = 5432
            listen_addr =
            auth_type = any
            pool_mode = transaction
            default_pool_size = 3
            """
        try settings.write(toFile: directory.path + "/pgbouncer.ini", atomically: true, encoding: .utf8)
        var command = ["/usr/sbin/pgbouncer", directory.path + "/pgbouncer.ini"]
        if geteuid() == 0 {
            // PgBouncer refuses to run as root.
            _ = try SystemProgram(["/bin/chown", "-R", "postgres", directory.path])
            command = ["/usr/bin/setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] + command
        }
        let pooler = try ChildProcess(command)
        try await pooler.line(containing: "process up")
        try await Household.with { household in
            let pooled = address.replacing(cluster.directory.path, with: directory.path)
            var nodes = try await Nodes(household, pooled, count: 2)
            try await nodes.daemons[0].process.line(containing: "through a pooler")
            try await everythingIsSeenAndDone(&nodes, try nodes.daemons.map { try $0.connect() })
        }
        pooler.send(signal: SIGINT)
        _ = try await pooler.end()
    }

    private func everythingIsSeenAndDone(_ nodes: inout Nodes, _ wires: [Wire]) async throws {
        let (a, b) = (wires[0], wires[1])
        let watch = try await b.call("job.watch", ["all": true])["watch"]
        let timer = try await a.submit(.timer(1000, ["tags": ["t"]]))
        _ = try await b.next("the timer") { $0.job == timer && $0.state == "running" }
        #expect(try await b.call("job.get", .job(timer))["state"] == "running")
        let waiting = a.send("job.wait", .job(timer))
        _ = try await b.call("job.cancel", .job(timer))
        #expect(try await a.result(waiting)["state"] == "cancelled")
        // A run at work at the other node.
        try await GuidedOrigin.run { origin in
            let fetch = try await a.submit(.fetch(origin.url("/slow"), ["requires": ["node": "a"]]))
            let exchange = try await origin.exchange("/slow")
            #expect(try await b.call("server.nodes")["nodes"]?.array?.map { $0["running"] } == [1, 0])
            let cancelled = try await b.call("job.cancel", .job(fetch))
            #expect(cancelled["state"] == "cancelled", "\(cancelled)")
            exchange.close()
        }
        // Lists, keys, queues, schedules and removal.
        let jobs = (0..<50).map { JSON.value(JSON($0)) }
        let list = try await b.submit(["source": ["type": "list", "jobs": .array(jobs)], "key": "k"])
        #expect(try await a.wait(list)["result"]?.array?.count == 50)
        #expect(try await a.submit(["source": ["type": "list", "jobs": .array(jobs)], "key": "k"]) == list)
        _ = try await a.call("queue.set", ["queue": "new", "concurrency": 7])
        _ = try await b.submit(.value(1, ["queue": "new"]))
        try await Nodes.until {
            try await b.call("queue.list")["queues"]?.array?.contains { $0["concurrency"] == 7 } == true
        }
        _ = try await a.call("schedule.set", ["schedule": "s", "every": 1, "spec": .value(5)])
        try await b.eventually { ($0["totals"]?["submitted"]?.int ?? 0) + 1 > 2 }
        #expect(try await b.call("schedule.list")["schedules"]?.array?.count == 1)
        _ = try await b.call("schedule.remove", ["schedule": "s"])
        _ = try await b.call("job.remove", .job(list))
        #expect(try await a.refusal("job.get", .job(list)).code == -32001)
        _ = try await b.call("job.unwatch", ["watch": watch ?? .null])
        try await nodes.stop()
    }

    @Test func killedNode_isTakenOver_andNothingIsLost() async throws {
        try await Nodes.with(3) { nodes, wires in
            try await GuidedOrigin.run({ _, _ in .text("1") }) { origin in
                let rest = [["then": JSON.timer(0.02)]] as JSON
                var ids: [Int] = []
                for number in 0..<200 {
                    ids.append(try await wires[0].submit(.fetch(origin.url("/\(number)"), ["then": rest])))
                }
                let jobs = (0..<100).map { _ in JSON.timer(0.05) }
                let list = try await wires[2].submit(["source": ["type": "list", "jobs": .array(jobs)]])
                // A job that runs during three crashes in a row is not run again.
                try await nodes.daemons[2].crash()
                try await nodes.restart(2)
                try await nodes.daemons[2].crash()
                for id in ids { #expect(try await wires[1].wait(id)["state"] == "succeeded", "job \(id)") }
                let end = try await wires[1].wait(list)
                #expect(end["result"]?.array?.count == 100, "\(end)")
            }
            for daemon in nodes.daemons.dropLast() { try await daemon.stop() }
        }
    }

    /// A node that stood still for longer than its lease stores nothing about the jobs that others took over.
    @Test func stoppedNode_losesItsJobs_andBeginsAnew() async throws {
        try await Nodes.with(2) { nodes, wires in
            try await GuidedOrigin.run { origin in
                let job = try await wires[1].submit(.fetch(origin.url("/x")))
                var first = try await origin.exchange("/x")
                // It may have begun at either node.
                var (stopped, other) = (1, 0)
                if try await wires[0].call("server.nodes")["nodes"]?[0]?["running"] == 1 { (stopped, other) = (0, 1) }
                nodes.daemons[stopped].process.send(signal: SIGSTOP)
                let second = try await origin.exchange("/x")
                second.answer(.text("second"))
                #expect(try await wires[other].wait(job)["result"]?["body"] == "second")
                nodes.daemons[stopped].process.send(signal: SIGCONT)
                try await nodes.daemons[stopped].process.line(containing: "Other nodes have taken over")
                // It may refuse requests until it has begun another life.
                try await Nodes.until { (try? await wires[stopped].wait(job)) != nil }
                first.answer(.text("first"))
                first = second
                #expect(try await wires[stopped].wait(job)["result"]?["body"] == "second")
                #expect(try await wires[stopped].succeed(.value(3)) == 3)
            }
            try await nodes.stop()
        }
    }

    @Test func stoppingNode_givesItsJobsBackAtOnce() async throws {
        try await Nodes.with(2) { nodes, wires in
            try await GuidedOrigin.run { origin in
                let job = try await wires[0].submit(.fetch(origin.url("/x")))
                _ = try await origin.exchange("/x")
                let isAtA = try await wires[0].call("server.nodes")["nodes"]?[0]?["running"] == 1
                try await nodes.daemons[isAtA ? 0 : 1].stop()
                try await origin.exchange("/x").answer(.text("again"))
                let end = try await wires[isAtA ? 1 : 0].wait(job)
                #expect(end["result"]?["body"] == "again" && end["crashes"] == nil, "\(end)")
                try await nodes.daemons[isAtA ? 1 : 0].stop()
            }
        }
    }

    @Test func boundJob_waitsForItsNode() async throws {
        try await Nodes.with(2) { nodes, wires in
            try await nodes.daemons[1].stop()
            let bound = try await wires[0].submit(.value("b", ["requires": ["node": "b"]]))
            #expect(try await wires[0].succeed(.value("a")) == "a")
            let waiting = try await wires[0].call("job.get", .job(bound))
            #expect(waiting["state"] == "queued" && waiting["waitingFor"] == "node", "\(waiting)")
            try await nodes.restart(1)
            let job = try await wires[0].wait(bound)
            #expect(job["result"] == "b" && job["node"] == "b", "\(job)")
            // A node of the same name is refused.
            let directory = try TemporaryDirectory()
            let process = try ChildProcess(
                try Daemon.command(
                    in: directory,
                    configuration: "state: {store: \"\(nodes.address)\"}\nnode: {name: a}"))
            #expect(try await process.end() == .code(69))
            #expect(process.errorText.contains("has a node of the name a already"), "\(process.errorText)")
            try await nodes.stop()
        }
    }

    @Test func downloads_goOnWithTheirParts_whenTheyAreRetried() async throws {
        let content = Sample.content
        try await Nodes.with(2) { nodes, wires in
            try await GuidedOrigin.run { origin in
                let names = (0..<6).map { "/\($0)" }
                var jobs: [Int] = []
                for name in names {
                    let retry = ["max": 1, "initial": 0.1] as JSON
                    jobs.append(try await wires[0].submit(.download(origin.url(name), to: "f\(name)", retry: retry)))
                }
                for name in names {
                    let exchange = try await origin.exchange(name)
                    exchange.sendHead("200 OK", [("Content-Length", "\(content.count)"), ("ETag", "\"v1\"")])
                    exchange.send(Array(content[..<40_000]))
                    exchange.close()
                }
                for name in names {
                    let exchange = try await origin.exchange(name)
                    let start = try #require(exchange.request.range?.start)
                    exchange.answer(.partial(content, from: start, etag: "\"v1\""))
                }
                for job in jobs { #expect(try await wires[1].wait(job)["state"] == "succeeded") }
            }
            try await nodes.stop()
        }
    }

    @Test func schedule_uploads_whereItWasSet() async throws {
        try await Nodes.with(2) { nodes, wires in
            let upload = ["source": ["type": "upload", "url": "http://127.0.0.1:1/", "path": "x"]] as JSON
            let list = ["source": ["type": "list", "jobs": [upload]]] as JSON
            for (index, spec) in [upload, list, upload.with(["requires": ["node": "b"]])].enumerated() {
                let node = JSON.string(index == 2 ? "b" : "a")
                let set = try await wires[0].call("schedule.set", ["schedule": "s", "every": 3600, "spec": spec])
                #expect(set["spec"]?["requires"] == ["node": node], "\(set)")
                let job = try await wires[1].call("schedule.run", ["schedule": "s"])
                #expect(try await wires[1].call("job.get", job)["node"] == node)
            }
            let named = ["source": ["type": "list", "jobs": [.value(1)]], "tags": ["upload"]] as JSON
            for spec in [.value(1), named] {
                let set = try await wires[0].call("schedule.set", ["schedule": "s", "every": 3600, "spec": spec])
                #expect(set["spec"] == spec)
            }
            try await nodes.stop()
        }
    }

    @Test func program_isLeftToTheNodeThatHasIt() async throws {
        try await Nodes.with(2) { nodes, wires in
            for (wire, other) in [(wires[0], "b"), (wires[1], "a")] {
                let spec = ["source": ["type": "program", "program": .string("only-\(other)")]] as JSON
                // It may not have heard of the other one.
                try await Nodes.until { (try? await wire.submit(spec)) != nil }
                for _ in 0..<4 {
                    let job = try await wire.run(spec)
                    #expect(job["result"]?["output"] == .string(other), "\(job)")
                }
            }
            let program = ["type": "program", "program": "only-b"] as JSON
            let bound = try await wires[0].submit(["source": program, "requires": ["node": "a"]])
            #expect(try await wires[1].wait(bound)["error"]?["kind"] == "invalid")
            let refusal = try await wires[0].refusal("job.submit", ["source": ["type": "program", "program": "none"]])
            #expect(refusal.code == -32602, "\(refusal)")
            try await nodes.stop()
        }
    }

    @Test func progressAndOutput_areSeenAtOtherNodes() async throws {
        try await Nodes.with(2) { nodes, wires in
            let (a, b) = (wires[0], wires[1])
            let watch = try await b.call("job.watch", ["all": true, "interval": 0.1])["watch"]
            try await GuidedOrigin.run { origin in
                let job = try await a.submit(.fetch(origin.url("/x"), ["requires": ["node": "a"]]))
                let exchange = try await origin.exchange("/x")
                exchange.sendHead("200 OK", [("Content-Length", "5")])
                exchange.send(Array("12".utf8))
                let told = try await b.next("progress") { $0.method == "job.progress" && $0.job == job }
                let progress = told.json["params"]?["progress"]
                #expect(progress?["completed"] == 2 && progress?["total"] == 5, "\(told)")
                #expect(try await b.call("job.get", .job(job))["progress"]?["completed"] == 2)
                exchange.send(Array("345".utf8))
                #expect(try await b.wait(job)["state"] == "succeeded")
                exchange.close()
            }
            let gate = try OutputTests.Gate(in: nodes.directories[0])
            let script = "echo one; : <'\(gate.path)'; echo two" as String
            let program = try await a.submit([
                "source": ["type": "program", "command": ["/bin/sh", "-c", .string(script)]],
                "requires": ["node": "a"],
            ])
            var text = ""
            var next = 0
            while text != "one\ntwo\n" {
                let piece = try await b.call(
                    "job.output", ["job": JSON(program), "offset": JSON(next), "wait": 60])
                next = piece["next"]?.int ?? 0
                for record in piece["records"]?.array ?? [] { text += record["text"]?.string ?? "" }
                if text == "one\n" { await gate.open() }
            }
            #expect(try await b.wait(program)["result"]?["output"] == "one\ntwo")
            _ = try await b.call("job.unwatch", ["watch": watch ?? .null])
            try await nodes.stop()
        }
    }
}
