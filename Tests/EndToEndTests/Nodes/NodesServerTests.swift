import Foundation
import Glibc
import JobModel
import TestOrigin
import TestSupport
import Testing

/// Nodes whose server fails in some way, and works again.
@Suite(.enabled(if: Nodes.obstacle == nil, Nodes.obstacle)) struct NodesServerTests {
    private static func awaitFailure(_ nodes: Nodes, _ wires: [Wire], saying text: String = "") async throws {
        for (daemon, wire) in zip(nodes.daemons, wires) {
            let refusal = try await wire.refusal("job.submit", .value(2))
            #expect(refusal.code == -32008 && (text.isEmpty || refusal.message.contains(text)), "\(refusal)")
            #expect(try await wire.call("server.info")["store"] == "postgresql")
            try await daemon.process.line(containing: "Nothing can be stored")
        }
    }

    private static func awaitRecovery(_ nodes: Nodes, _ wires: [Wire]) async throws {
        for (daemon, wire) in zip(nodes.daemons, wires) {
            try await daemon.process.line(containing: "Storing works again")
            #expect(try await wire.succeed(.value(3)) == 3)
        }
    }

    @Test(arguments: ["stopped", "killed"])
    func everyNode_goesOn_afterTheServerWasAway(_ how: String) async throws {
        let cluster = try PostgreSQLCluster()
        try await Nodes.with(2, cluster) { nodes, wires in
            // Whether the lease ends meanwhile, so that it is asked again, depends on how long the server takes.
            try await GuidedOrigin.run({ _, count in count == 0 ? nil : .text("x") }) { origin in
                let job = try await wires[0].submit(.fetch(origin.url("/x")))
                let exchange = try await origin.exchange("/x")
                if how == "killed" { try cluster.kill() } else { try cluster.stop() }
                try await Self.awaitFailure(nodes, wires)
                let findings = try await nodes.daemons[0].deferctl(["doctor"], end: .code(1)).outputText
                #expect(findings.contains("error    storage"), "\(findings)")
                try cluster.start()
                #expect(try await wires[0].call("server.nodes")["nodes"]?.array?.count == 2)
                try await Self.awaitRecovery(nodes, wires)
                exchange.answer(.text("x"))
                #expect(try await wires[1].wait(job)["result"]?["body"] == "x")
            }
            try await nodes.stop()
        }
    }

    /// A node may open another session meanwhile, unless one that stands still holds the lock of rounds.
    @Test func answers_areTrue_whileSessionsStandStill() async throws {
        let cluster = try PostgreSQLCluster()
        let promises = Promises(in: cluster.directory)
        try await Nodes.with(2, cluster) { nodes, wires in
            let timer = try await wires[0].submit(.timer(0.1))
            let sessions = try cluster.sql(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'deferd'", in: "postgres"
            ).split(separator: "\n").compactMap { pid_t($0) }
            for session in sessions { kill(session, SIGSTOP) }
            let answered = Mailbox<Int>()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (node, wire) in wires.enumerated() {
                    group.addTask {
                        try await promises.submit(at: wire)
                        answered.put(node)
                    }
                }
                for (node, daemon) in nodes.daemons.enumerated() {
                    #expect(try await daemon.connect().call("server.info")["store"] == "postgresql")
                    // A submission is not answered before the fate of its commit is known.
                    try await Nodes.until {
                        answered.waiting.contains(node)
                            || daemon.process.errorText.contains("Nothing can be stored")
                    }
                }
                for session in sessions { kill(session, SIGCONT) }
                try await group.waitForAll()
            }
            for wire in wires {
                try await Nodes.until { (try? await wire.submit(.value(3))) != nil }
            }
            #expect(try await wires[1].wait(timer)["state"] == "succeeded")
            try await promises.check(at: wires[0], cluster, nodes.address, onlyOnce: true)
            try await nodes.stop()
        }
    }

    @Test func everyNode_goesOn_afterATableWasLocked() async throws {
        let cluster = try PostgreSQLCluster()
        try await Nodes.with(2, cluster) { nodes, wires in
            let timer = try await wires[0].submit(.timer(0.1))
            let locker = try ChildProcess(["/usr/bin/psql", "-X", "-q", "-A", "-t", nodes.address])
            locker.send("BEGIN; LOCK TABLE deferd.jobs IN ACCESS EXCLUSIVE MODE; SELECT 'locked';\n")
            try await locker.line(containing: "locked")
            try await Self.awaitFailure(nodes, wires)
            #expect(try await wires[0].refusal("job.get", .job(timer)).code == -32008)
            locker.closeInput()
            try await Self.awaitRecovery(nodes, wires)
            #expect(try await wires[1].wait(timer)["state"] == "succeeded")
            try await nodes.stop()
        }
    }

    @Test func everyNode_goesOn_onceThereAreConnectionsAgain() async throws {
        let cluster = try PostgreSQLCluster()
        let address = try cluster.makeDatabase()
        // Limits of the server and of a role give the same error, and this one can be changed while the server runs.
        func limit(_ count: Int) throws { try cluster.sql("ALTER ROLE few CONNECTION LIMIT \(count)", in: "postgres") }
        try cluster.sql(
            "CREATE ROLE few LOGIN CONNECTION LIMIT 0; GRANT CREATE ON DATABASE test1 TO few", in: "postgres")
        // A program of its own, as the start must not end while other tests keep this process busy.
        let waiting = try ChildProcess([
            "/bin/sh", "-c",
            """
            until grep -q 'too many connections for role' "$0"; do sleep 0.05; done
            exec psql -X -q "$1" -c 'ALTER ROLE few CONNECTION LIMIT 2'
            """, cluster.directory.path + "/server.log", cluster.address(of: "postgres"),
        ])
        try await Nodes.with(1, at: address.replacing("user=postgres", with: "user=few")) { nodes, wires in
            #expect(try await waiting.end() == .code(0))
            // Nothing is left for a result that is not stored in a row.
            let long = try await wires[0].submit(.value(.string(String(repeating: "x", count: 100_000))))
            try await nodes.daemons[0].process.line(containing: "A job waits for the database")
            #expect(try await wires[0].succeed(.value(1)) == 1)
            try limit(0)
            try cluster.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'few'", in: "postgres")
            try await Self.awaitFailure(nodes, wires, saying: "too many connections")
            try limit(100)
            try await Self.awaitRecovery(nodes, wires)
            #expect(try await wires[0].wait(long)["state"] == "succeeded")
            try await nodes.stop()
        }
    }

    @Test(.enabled(if: geteuid() == 0 && Files.exists("/usr/bin/unshare"), "Only root can give a server a small disk."))
    func submissions_areRefused_whileTheServersDiskIsFull() async throws {
        let cluster = try PostgreSQLCluster()
        try cluster.stop()
        try cluster.start(disk: "24m")
        let disk = cluster.directory.path + "/disk"
        try cluster.sql("CREATE TABLESPACE small LOCATION '\(disk)'", in: "postgres")
        let address = try cluster.makeDatabase(options: "TABLESPACE small")
        let filler = "/proc/\(try cluster.process)/root" + disk + "/filler"
        try await Nodes.with(2, at: address) { nodes, wires in
            let text = JSON.string(String(repeating: "x", count: 50_000))
            let kept = try await wires[0].submit(.value(text))
            let (_, _, said) = try await ChildProcess.run(["/bin/dd", "if=/dev/zero", "of=" + filler, "bs=4096"])
            #expect(said.contains("No space left"), "\(said)")
            var refusals: [Wire.Refusal] = []
            while refusals.isEmpty {
                for wire in wires {
                    do { _ = try await wire.submit(.value(text, ["delay": 1000])) } catch let refusal as Wire.Refusal {
                        refusals.append(refusal)
                    }
                }
            }
            for refusal in refusals {
                #expect(refusal.code == -32008 && refusal.message.contains("No space left on device"), "\(refusal)")
            }
            #expect(try await wires[0].call("server.info")["store"] == "postgresql")
            try #require(unlink(filler) == 0)
            for wire in wires {
                try await Nodes.until { (try? await wire.submit(.value(text, ["delay": 1000]))) != nil }
                #expect(try await wire.succeed(.value(text)) == text)
            }
            #expect(try await wires[1].wait(kept)["state"] == "succeeded")
            try await nodes.stop()
        }
    }

    @Test func acknowledgedJobs_areThere_onceASynchronousStandbyTakesOver() async throws {
        let primary = try PostgreSQLCluster()
        let direct = try primary.makeDatabase()
        let standby = try primary.makeStandby()
        let (first, second) = (primary.directory.path, standby.directory.path)
        let address = direct.replacing(first, with: "\(first),\(second)") + "&target_session_attrs=read-write"
        let promises = Promises(in: primary.directory)
        let answers = Mailbox<Void>()
        try await Nodes.with(2, at: address) { nodes, wires in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for wire in wires {
                    for _ in 0..<4 {
                        group.addTask {
                            for _ in 0..<25 {
                                try await promises.submit(at: wire)
                                answers.put(())
                            }
                        }
                    }
                }
                for _ in 0..<60 { _ = try await answers.next("answer") }
                try primary.kill()
                for daemon in nodes.daemons { try await daemon.process.line(containing: "Nothing can be stored") }
                try standby.promote()
                try await group.waitForAll()
            }
            for daemon in nodes.daemons { try await daemon.process.line(containing: "Storing works again") }
            #expect(try await promises.submit(at: wires[0]))
            try await promises.check(
                at: wires[1], standby, direct.replacing(first, with: second), onlyOnce: false)
            try await nodes.stop()
        }
    }
}
