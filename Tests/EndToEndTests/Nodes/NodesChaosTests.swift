import Foundation
import JobModel
import TestSupport
import Testing

/// Nodes and their server that are killed at random while clients submit to all nodes. $DEFERD_SEED repeats a run's choices.
@Suite(.enabled(if: Nodes.obstacle == nil, Nodes.obstacle)) struct NodesChaosTests {
    @Test func everythingGoesOn_whenAllIsKilledAtRandom() async throws {
        let named = ProcessInfo.processInfo.environment["DEFERD_SEED"].flatMap(UInt64.init)
        let seed = named ?? UInt64.random(in: 1...9999)
        print("NodesChaosTests: DEFERD_SEED=\(seed)")
        var random = SeededGenerator(seed: seed)
        let cluster = try PostgreSQLCluster()
        let promises = Promises(in: cluster.directory)
        try await Nodes.with(3, cluster) { nodes, _ in
            var dead: Set<Int> = []
            for _ in 0..<(Nodes.mayTakeLong ? 30 : 3) {
                let alive = nodes.daemons.indices.filter { !dead.contains($0) }.map { nodes.daemons[$0] }
                let answers = Mailbox<Void>()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for daemon in alive {
                        let wire = try daemon.connect()
                        for _ in 0..<4 {
                            group.addTask {
                                for _ in 0..<10 {
                                    guard try await promises.submit(at: wire) else { break }
                                    answers.put(())
                                }
                            }
                        }
                    }
                    for _ in 0..<Int.random(in: 1...30, using: &random) { _ = try await answers.next("answer") }
                    let isServerKilled = random.chance(0.5)
                    if isServerKilled { try random.chance(0.5) ? cluster.kill() : cluster.stop() }
                    let killed = nodes.daemons.indices.filter { !dead.contains($0) && random.chance(0.4) }
                    for node in killed { try await nodes.daemons[node].crash() }
                    dead.formUnion(killed)
                    if isServerKilled { try cluster.start() }
                    // Others take over from a node that stays away.
                    for node in dead.sorted() where random.chance(0.6) || dead.count == 3 {
                        try await nodes.restart(node)
                        dead.remove(node)
                    }
                    try await group.waitForAll()
                }
            }
            for node in dead { try await nodes.restart(node) }
            for daemon in nodes.daemons {
                let wire = try daemon.connect()
                try await Nodes.until { (try? await wire.submit(.value(1))) != nil }
            }
            try await promises.check(at: nodes.daemons[0].connect(), cluster, nodes.address, onlyOnce: false)
            try await nodes.stop()
        }
    }
}
