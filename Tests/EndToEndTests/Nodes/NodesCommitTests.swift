import JobModel
import TestSupport
import Testing

/// Nodes whose connection to the server breaks, or stands still, at a commit.
@Suite(.enabled(if: Nodes.obstacle == nil, Nodes.obstacle)) struct NodesCommitTests {
    private let cluster: PostgreSQLCluster
    private let direct: String
    private let proxy: PostgreSQLProxy
    private let hits = Mailbox<Void>()

    init() throws {
        cluster = try #require(PostgreSQLCluster.shared)
        direct = try cluster.makeDatabase()
        proxy = try PostgreSQLProxy(before: cluster)
    }

    @Test func answers_areTrue_whenCommitsAreCut() async throws {
        let promises = Promises(in: cluster.directory)
        let cuts = Nodes.mayTakeLong ? 200 : 48
        try await Nodes.with(2, at: proxy.address(for: direct)) { nodes, wires in
            for round in 0..<cuts {
                // A beat or the end of a run is cut too, and what settles the fate of another commit.
                let statement = round % 4 == 3 ? "INSERT INTO deferd_receipts" : "INSERT INTO jobs"
                let cut = ([.before, .during, .after] as [PostgreSQLProxy.Cut])[round % 3]
                proxy.cut(cut, at: statement) { [hits] in hits.put(()) }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<6 {
                        group.addTask { try await promises.submit(at: wires[number % 2]) }
                    }
                    try await group.waitForAll()
                }
                _ = try await hits.next("a cut")
            }
            #expect(promises.accepted >= cuts)
            try await promises.check(at: wires[0], cluster, direct, onlyOnce: true)
            try await nodes.stop()
        }
    }

    @Test(arguments: [PostgreSQLProxy.Cut.holdBefore, .holdAfter])
    func answer_comesOnceItIsTrue_whenACommitIsHeld(_ cut: PostgreSQLProxy.Cut) async throws {
        try await Nodes.with(1, at: proxy.address(for: direct)) { nodes, wires in
            let (node, wire) = (nodes.daemons[0], wires[0])
            proxy.cut(cut, at: "INSERT INTO jobs") { [hits] in hits.put(()) }
            let held = JSON(wire.send("job.submit", .value(1, ["key": "held"])))
            _ = try await hits.next("the commit")
            try await node.process.line(containing: "Nothing can be stored")
            #expect(try await wire.refusal("job.submit", .value(2)).code == -32008)
            // Other calls of its connection wait for that one.
            let other = try node.connect()
            #expect(try await other.refusal("job.list").code == -32008)
            #expect(try await other.call("server.info")["store"] == "postgresql")
            #expect(!wire.waiting.contains { $0.id == held })
            proxy.release()
            try await node.process.line(containing: "Storing works again")
            let answer = try await wire.answer(held)
            #expect(answer["result"] != nil || answer["error"]?["code"] == -32008, "\(answer)")
            if cut == .holdAfter { #expect(answer["result"] != nil, "\(answer)") }
            let stored = try cluster.sql("SELECT count(*) FROM deferd.jobs", in: direct)
            #expect(stored == (answer["result"] == nil ? "0" : "1"))
            #expect(try await wire.succeed(.value(3)) == 3)
            try await nodes.stop()
        }
    }
}
