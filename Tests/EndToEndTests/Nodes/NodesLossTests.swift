import Glibc
import JobModel
import TestOrigin
import TestSupport
import Testing

/// Nodes that die, and clocks that are wrong.
@Suite(.enabled(if: Nodes.obstacle == nil, Nodes.obstacle)) struct NodesLossTests {
    /// Neither a lease nor a timer depends on a clock that can be set.
    @Test(.enabled(if: Interposer.obstacle == nil)) func clocks_changeNothing_whenTheyAreSet() async throws {
        let cluster = try PostgreSQLCluster()
        let server = try await WallClock(in: cluster.directory)
        try cluster.stop()
        try cluster.start(environment: server.environment)
        let directory = try TemporaryDirectory()
        let clock = try await WallClock(in: directory)
        let address = try cluster.makeDatabase()
        try await Nodes.with(2, at: address, environments: [clock.environment]) { nodes, wires in
            try await GuidedOrigin.run { origin in
                var jobs: [(id: Int, exchange: GuidedOrigin.Exchange)] = []
                for name in ["a", "b"] {
                    let id = try await wires[0].submit(
                        .fetch(origin.url("/\(name)"), ["requires": ["node": .string(name)]]))
                    jobs.append((id, try await origin.exchange("/\(name)")))
                }
                let hour: Int64 = 3600
                for (node, database) in [(hour, 0), (hour, -hour), (-hour, hour), (0, 0)] {
                    try clock.leap(to: node)
                    try server.leap(to: database)
                    // Longer than a lease together.
                    for wire in wires { #expect(try await wire.run(.timer(2))["state"] == "succeeded") }
                }
                for job in jobs {
                    job.exchange.answer(.text("once"))
                    #expect(try await wires[1].wait(job.id)["result"]?["body"] == "once")
                }
                #expect(origin.requests.count == 2)
            }
            #expect(try cluster.sql("SELECT count(*), bool_or(is_over) FROM deferd.deferd_lives", in: address) == "2|f")
            try await nodes.stop()
        }
    }

    @Test func poisonJob_fails_afterThreeNodesDied() async throws {
        try await Nodes.with(3) { nodes, wires in
            // What runs beside it ends once it is asked again.
            try await GuidedOrigin.run({ _, count in count == 0 ? nil : .text("x") }) { origin in
                var others: [Int] = []
                for wire in wires { others.append(try await wire.submit(.fetch(origin.url("/\(others.count)")))) }
                for other in 0..<3 { _ = try await origin.exchange("/\(other)") }
                // The guard of programs is a child of the daemon.
                let script = "kill -9 $(cut -d ' ' -f 4 /proc/$PPID/stat)"
                let poison = try await wires[0].submit(ProgramTests.shell(script, ["retry": ["max": 20]]))
                for daemon in nodes.daemons { #expect(try await daemon.process.end() == .signal(SIGKILL)) }
                for node in 0..<3 { try await nodes.restart(node) }
                let wire = try nodes.daemons[0].connect()
                let end = try await wire.wait(poison)
                #expect(end["error"]?["kind"] == "interrupted" && end["error"]?["retryable"] == false, "\(end)")
                for other in others { #expect(try await wire.wait(other)["state"] == "succeeded") }
            }
            try await nodes.stop()
        }
    }

    /// Records each end of a job that is stored.
    private func recordEnds(_ address: String) throws {
        try PostgreSQLCluster.shared?.sql(
            """
            CREATE TABLE public.ends (job bigint);
            CREATE FUNCTION public.record() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN INSERT INTO public.ends VALUES (new.id); RETURN NULL; END $$;
            CREATE TRIGGER record AFTER UPDATE ON deferd.jobs FOR EACH ROW
            WHEN (new.state >= 4 AND old.state < 4) EXECUTE FUNCTION public.record();
            """, in: address)
    }

    @Test func list_isWhole_whenItsNodeDiesThreeTimes() async throws {
        let cluster = try #require(PostgreSQLCluster.shared)
        try await Nodes.with(3) { nodes, wires in
            try recordEnds(nodes.address)
            let count = Nodes.mayTakeLong ? 1000 : 200
            let child = JSON.timer(0.01, ["then": [["then": ["return": "{{index}}"]]]])
            let list = try await wires[0].submit([
                "source": ["type": "each", "in": .array((0..<count).map { JSON($0) }), "job": child]
            ])
            for share in 1...3 {
                try await Nodes.until {
                    let ended = try cluster.sql("SELECT count(*) FROM public.ends", in: nodes.address)
                    return Int(ended).map { $0 >= count * share / 4 } ?? false
                }
                try await nodes.daemons[0].crash()
                try await nodes.restart(0)
            }
            let end = try await wires[1].wait(list)
            let values = end["result"]?.array?.map { $0["value"] ?? .null }
            #expect(values == (0..<count).map { JSON($0) }, "\(end)")
            let ends = try cluster.sql("SELECT count(*), count(DISTINCT job) FROM public.ends", in: nodes.address)
            #expect(ends == "\(count + 1)|\(count + 1)")
            try await nodes.stop()
        }
    }

    @Test(.enabled(if: Nodes.mayTakeLong, "It takes minutes: make test-machines."))
    func nodesJobs_areTakenOver_beside50000ThatWait() async throws {
        let cluster = try #require(PostgreSQLCluster.shared)
        try await Nodes.with(2) { nodes, wires in
            let (dead, other) = (wires[0], wires[1])
            _ = try await dead.call("queue.set", ["queue": "many", "concurrency": 100, "suspended": true])
            for _ in 0..<50 {
                let sent = (0..<1000).map { dead.send("job.submit", .value(JSON($0), ["queue": "many"])) }
                for id in sent { _ = try await dead.result(id) }
            }
            try await GuidedOrigin.run { origin in
                // Some of them run at each node.
                var jobs: [Int] = []
                for number in 0..<8 { jobs.append(try await dead.submit(.fetch(origin.url("/\(number)")))) }
                for number in 0..<8 { _ = try await origin.exchange("/\(number)") }
                let beat = "SELECT beat FROM deferd.deferd_lives WHERE node = 'b'"
                let before = try #require(Int(try cluster.sql(beat, in: nodes.address)))
                try await nodes.daemons[0].crash()
                try cluster.sql(
                    """
                    SET statement_timeout = '300 s'; DO $$ BEGIN
                    WHILE NOT (SELECT is_taken FROM deferd.deferd_lives WHERE node = 'a') LOOP PERFORM pg_sleep(0.01); END LOOP;
                    END $$
                    """, in: nodes.address)
                let after = try #require(Int(try cluster.sql(beat, in: nodes.address)))
                // It beats each second of its time; a lease and two seconds are five of them.
                #expect(after - before <= Nodes.lease + 2 + 1)
                _ = try await other.call("queue.set", ["queue": "many", "suspended": false])
                try await other.eventually { $0["jobs"]?["succeeded"] == 50_000 }
                for job in jobs { _ = try await other.call("job.cancel", .job(job)) }
            }
            try await nodes.daemons[1].stop()
        }
    }
}
