import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// Jobs in a PostgreSQL database, on a server of the test's own.
@Suite(
    .enabled(
        if: PostgreSQLCluster.programs != nil && Files.exists("/usr/include/postgresql/libpq-fe.h"),
        "PostgreSQL or libpq-dev is not installed; deferd is not tested with it."))
struct PostgreSQLTests {
    private func configuration(_ address: String) -> String { "state: {store: \"\(address)\"}" }

    @Test func jobs_endAndGoOn_acrossAKill() async throws {
        let cluster = try #require(PostgreSQLCluster.shared)
        let configuration = configuration(try cluster.makeDatabase())
        try await Household.with { household in
            var (daemon, wire) = try await household.serve(configuration: configuration)
            #expect(try await wire.call("server.info")["store"] == "postgresql")
            _ = try await wire.call("job.watch", ["all": true])
            let chain = try await wire.submit(.value(1, ["then": [["then": ["return": ["{{input}}", 2]]]]]))
            _ = try await wire.state("succeeded", of: chain)
            #expect(try await wire.call("job.get", .job(chain))["result"] == [1, 2])
            let jobs = (0..<100).map { JSON.value(JSON($0)) }
            let list = try await wire.wait(
                try await wire.submit(["source": ["type": "list", "jobs": .array(jobs)]]))
            #expect(list["result"]?.array?.count == 100, "\(list)")
            let bound = try await wire.submit(.value(1, ["requires": ["node": "other"], "held": true]))
            let reboot = try await wire.refusal(
                "schedule.set", ["schedule": "s", "calendar": "@reboot", "spec": .value(1)])
            #expect(reboot.code == -32602 && reboot.pointer == "/calendar")
            let backup = try await wire.refusal("server.backup")
            #expect(backup.code == -32601 && backup.message.contains("pg_dump"))
            let timer = try await wire.submit(.timer(0.5))
            let key = try await wire.submit(.value("once", ["key": "k\u{0}"]))
            try await daemon.crash()

            (daemon, wire) = try await household.serve(configuration: configuration)
            #expect(try await wire.wait(timer)["state"] == "succeeded")
            #expect(try await wire.submit(.value("once", ["key": "k\u{0}"])) == key)
            #expect(try await wire.call("job.get", .job(chain))["result"] == [1, 2])
            #expect(try await wire.call("job.get", .job(bound))["node"] == "other")
            try await daemon.stop()
        }
    }

    @Test func nodes_areAllOfTheDatabase_withTheirConfigurations() async throws {
        let cluster = try #require(PostgreSQLCluster.shared)
        let address = try cluster.makeDatabase()
        let other = "'other', '', '0.0', now() - interval '1 minute'"
        let settings = ["name: a", "name: b", "name: c, statementTimeout: 4", "name: d, lease: 14"]
        var answers: [[JSON]] = []
        for (index, setting) in settings.enumerated() {
            // One with a password in the address, in a file with other lines.
            let address = index == 1 ? address + "&password=s3cret" : address
            let queues = "queues: {\(index == 1 ? "b: 2, default: 5" : "default: 5,\n  b: 2")}"
            let configuration =
                "\(configuration(address))\nnode: {\(setting)}\nprograms: {any: false, p: /p}\n\(queues)"
            try await Daemon.run(configuration: configuration) { daemon, wire in
                answers.append(try await wire.call("server.nodes")["nodes"]?.array ?? [])
                try await daemon.reload(configuration.replacing("p: /p", with: "q: /p"))
                let reloaded = try await wire.call("server.nodes")["nodes"]?.array ?? []
                #expect(reloaded[index]["programs"] == ["q"])
                #expect(reloaded[index]["configuration"] != answers[index][index]["configuration"])
                try await daemon.reload(configuration)
                let restored = try await wire.call("server.nodes")["nodes"]?.array ?? []
                #expect(restored[index]["configuration"] == answers[index][index]["configuration"])
                guard index == settings.count - 1 else { return }
                let table = try await daemon.deferctl(["nodes"]).outputText.split(separator: "\n")
                #expect(table.count == 5 && table[4].hasPrefix("d     running"), "\(table)")
                try cluster.sql(
                    "INSERT INTO deferd.deferd_lives (node, instance, version, seen) VALUES (\(other))", in: address)
                let findings = try await daemon.deferctl(["doctor"], end: .code(1)).outputText
                for text in [
                    "The node other has not been", "The nodes have different versions",
                    "The nodes have different settings",
                ] {
                    #expect(findings.contains("warning  nodes     \(text)"), "\(findings)")
                }
            }
        }
        #expect(answers.map(\.count) == [1, 2, 3, 4])
        let nodes = try #require(answers.last)
        #expect(nodes.map { $0["node"] } == ["a", "b", "c", "d"])
        #expect(nodes.map { $0["state"] } == ["stopped", "stopped", "stopped", "running"])
        #expect(nodes.allSatisfy { $0["running"] == 0 && $0["programs"] == ["p"] })
        let hashes = nodes.map { $0["configuration"] }
        #expect(hashes[0] == hashes[1] && Set(hashes.compactMap { $0?.string }).count == 3, "\(hashes)")
    }

    @Test func longResultsAndOutput_areInTheDatabase() async throws {
        let cluster = try #require(PostgreSQLCluster.shared)
        let database = try cluster.makeDatabase()
        let configuration = configuration(database) + "\n" + ProgramTests.anyProgram
        /// All that these methods tell of a job.
        func whole(_ method: String, _ job: Int, _ wire: Wire) async throws -> [JSON] {
            var (pieces, offset): ([JSON], Int) = ([], 0)
            while true {
                let piece = try await wire.call(method, JSON.job(job).with(["offset": JSON(offset)]))
                pieces.append(piece)
                if piece["end"] == true || piece["eof"] == true { return pieces }
                let size = try piece["data"]?.string.map { try #require(Data(base64Encoded: $0)).count } ?? 0
                offset = piece["next"]?.int ?? offset + size
            }
        }
        try await Household.with { household in
            var (daemon, wire) = try await household.serve(configuration: configuration)
            let script = "seq 200000; echo end >&2"
            let program = try await wire.submit([
                "source": ["type": "program", "command": ["/bin/sh", "-c", .string(script)]]
            ])
            _ = try await wire.wait(program)
            let long = JSON.string(String(repeating: "long", count: 100_000))
            let value = try await wire.submit(.value(long, ["then": [["then": ["return": "{{input}}"]]]]))
            _ = try await wire.wait(value)
            let copy = try await wire.submit(["source": ["type": "job", "job": JSON(value)]])
            _ = try await wire.wait(copy)
            let killed = try await wire.submit([
                "source": ["type": "program", "command": ["/bin/sh", "-c", "echo before; exec sleep 1000"]]
            ])
            let before = try await wire.call("job.output", JSON.job(killed).with(["wait": 60]))
            #expect(before["next"] == 7)
            let asked = [("job.result", program), ("job.output", program), ("job.result", value), ("job.result", copy)]
            var told: [[JSON]] = []
            for (method, job) in asked { told.append(try await whole(method, job, wire)) }
            #expect(told.allSatisfy { $0.count > 1 })
            #expect(told[2] == told[3])
            try await daemon.crash()

            (daemon, wire) = try await household.serve(configuration: configuration)
            #expect(try await wire.wait(killed)["error"]?["kind"] == "interrupted")
            let kept = try await wire.call("job.output", .job(killed))
            #expect(kept["records"] == before["records"])
            try await daemon.stop()
            #expect(Files.names(in: daemon.state + "/spool") == [])
            try FileManager.default.removeItem(atPath: daemon.state + "/spool")

            (daemon, wire) = try await household.serve(configuration: configuration)
            for (index, (method, job)) in asked.enumerated() {
                #expect(try await whole(method, job, wire) == told[index])
            }
            #expect(try await wire.call("job.output", .job(killed)) == kept)
            try await Daemon.run(configuration: configuration + "node: {name: other}\n") { other, wire in
                for (index, (method, job)) in asked.enumerated() {
                    #expect(try await whole(method, job, wire) == told[index])
                }
                #expect(try await wire.call("job.output", .job(killed)) == kept)
                try await other.stop()
            }
            for job in [program, value, copy, killed] { _ = try await wire.call("job.remove", .job(job)) }
            try await daemon.stop()
            #expect(try cluster.sql("SELECT count(*) FROM deferd.blob_parts", in: database) == "0")
        }
    }

    @Test func outputOfALostNode_isReadElsewhere_onceItReturns() async throws {
        let cluster = try #require(PostgreSQLCluster.shared)
        let configuration = configuration(try cluster.makeDatabase()) + "\n" + ProgramTests.anyProgram
        try await Household.with { household in
            let (lost, first) = try await household.serve(configuration: configuration + "node: {name: a, lease: 3}")
            let job = try await first.submit([
                "source": ["type": "program", "command": ["/bin/sh", "-c", "echo before; exec sleep 1000"]]
            ])
            let before = try await first.call("job.output", JSON.job(job).with(["wait": 60]))
            #expect(before["next"] == 7)
            try await Daemon.run(configuration: configuration + "node: {name: b, lease: 3}") { other, wire in
                try await lost.crash()
                #expect(try await wire.wait(job)["error"]?["kind"] == "interrupted")
                #expect(
                    try await wire.call("job.output", .job(job))
                        == ["records": [], "next": 0, "end": true, "omitted": 0])
                let again = try await household.start(configuration: configuration + "node: {name: a, lease: 3}")
                var output: JSON
                repeat { output = try await wire.call("job.output", .job(job)) } while output["next"] == 0
                #expect(output["records"] == before["records"] && output["end"] == true)
                try await again.stop()
                #expect(Files.names(in: again.state + "/spool") == [])
                try await other.stop()
            }
        }
    }

    @Test func start_isRefused_withoutItsDatabase_orWithAnother() async throws {
        let cluster = try #require(PostgreSQLCluster.shared)
        let address = try cluster.makeDatabase()
        try await Household.with { household in
            let first = try await household.start(configuration: configuration(address))
            for (address, code, text) in [
                (address, 69, "has a node of the name"),
                (cluster.address(of: "none") + "&password=s3cret", 78, "no such database"),
            ] as [(String, Int32, String)] {
                try await TemporaryDirectory.with { directory in
                    let (end, _, errors) = try await ChildProcess.run(
                        try Daemon.command(in: directory, configuration: configuration(address)))
                    #expect(end == .code(code) && errors.contains(text), "\(end): \(errors)")
                    #expect(!errors.contains("s3cret"))
                }
            }
            try await first.stop()
        }
    }

    @Test func password_isTakenFromACredential() async throws {
        let cluster = try PostgreSQLCluster()
        let rules = cluster.directory.path + "/data/pg_hba.conf"
        let others = try String(contentsOfFile: rules, encoding: .utf8)
        try "local all guarded scram-sha-256\n\(others)".write(toFile: rules, atomically: false, encoding: .utf8)
        try cluster.sql("CREATE ROLE guarded LOGIN SUPERUSER PASSWORD 's3cret'", in: "postgres")
        try cluster.sql("SELECT pg_reload_conf()", in: "postgres")
        let configuration = configuration(try cluster.makeDatabase().replacing("user=postgres", with: "user=guarded"))
        try await TemporaryDirectory.with { directory in
            let (end, _, errors) = try await ChildProcess.run(
                try Daemon.command(in: directory, configuration: configuration))
            #expect(end == .code(78) && errors.contains("password"), "\(end): \(errors)")
            try "s3cret\n".write(toFile: directory.path + "/store-password", atomically: false, encoding: .utf8)
            try await Daemon.run(
                configuration: configuration, environment: ["CREDENTIALS_DIRECTORY": directory.path]
            ) { _, wire async throws in #expect(try await wire.succeed(.value(1)) == 1) }
        }
    }

    @Test(arguments: ["postgresql://[s3cret", "mysql://s3cret"])
    func check_refusesAnAddress_withoutShowingIt(_ address: String) async throws {
        try await TemporaryDirectory.with { directory in
            let command = try Daemon.command(in: directory, configuration: configuration(address)) + ["--check"]
            let (end, _, errors) = try await ChildProcess.run(command)
            #expect(end == .code(78) && errors.contains("state.store") && !errors.contains("s3cret"), "\(errors)")
        }
    }
}
