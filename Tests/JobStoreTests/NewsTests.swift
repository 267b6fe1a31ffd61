import Glibc
import InMemoryStore
import JobModel
import JobStore
import Synchronization
import TestSupport
import Testing

#if canImport(PostgreSQLStore)
    @testable import PostgreSQLStore

    /// What nodes that share a database learn of each other.
    @Suite(.enabled(if: PostgreSQLCluster.programs != nil, "PostgreSQL is not installed.")) struct NewsTests {
        private let address: String
        private let directories: [TemporaryDirectory]

        init() throws {
            address = try #require(PostgreSQLCluster.shared).makeDatabase()
            directories = try (0..<3).map { _ in try TemporaryDirectory() }
        }

        private func open(_ index: Int) throws -> PostgreSQLStore {
            try PostgreSQLStore(
                PostgreSQLSettings(address: address, statementTimeout: 20), path: directories[index].path,
                node: NodeDescription(name: "node\(index)"))
        }

        @Test func nodesHear_whatOthersChanged_once() throws {
            let first = try open(0)
            let alone = StoreUnderTest(first)
            try alone.insert([.sample()])
            #expect(try alone.round { try $0.news() } == nil)
            let (second, third) = (StoreUnderTest(try open(1)), StoreUnderTest(try open(2)))
            let key = CountKey(owner: 1, queue: "q", state: .queued)
            let ids = try alone.round { transaction in
                let ids = try transaction.create([.sample(), .sample()])
                let work = try transaction.add(WorkRow(kind: .removeTree, job: ids[0], owner: 1))
                try transaction.endWork(work)
                try transaction.put([key: CountValue(jobs: 2, bytes: 10)])
                try transaction.put(QueueOverrides(), ofQueue: "q")
                return (jobs: ids, work: work)
            }
            // A round that does not ask has heard of nothing, and neither has one that is undone.
            try second.round { _ = try $0.counts() }
            second.undoneRound { transaction throws(StoreError) in _ = try transaction.news() }
            for other in [second, third] {
                let news = try #require(try other.round { try $0.news() })
                #expect(news.jobs == ids.jobs && news.work == [ids.work])
                #expect(news.counts[key]?.jobs == 2 && news.hasQueues && !news.hasSchedules && !news.hasLostRuns)
                #expect(try other.round { try $0.news() } == nil)
            }
            // Ids grow over all nodes, and a count is heard of when nothing is left of it.
            let later = try second.round { transaction in
                try transaction.put([key: CountValue()])
                return try transaction.create([.sample()])
            }
            #expect(later[0] > ids.jobs[1])
            #expect(try alone.insert([.sample()])[0] > later[0])
            let news = try #require(try third.round { try $0.news() })
            #expect(news.counts[key]?.jobs == 0 && news.jobs.first == later[0])
        }

        @Test func whatIsToldInARound_waitsForItsEnd_asTheRoundMustBeSynced() throws {
            let (first, second) = (try open(0), try open(1))
            let isHeard = Atomic(false)
            second.listen { text in if text == "[1]" { isHeard.store(true, ordering: .relaxed) } }
            // It may not listen yet.
            for _ in 0..<2000 where !isHeard.load(ordering: .relaxed) {
                let end = first.round { (transaction) throws(StoreError) in
                    _ = try transaction.nextNumber()
                    first.tell(["[1]"])
                    let select = "SELECT current_setting('synchronous_commit')"
                    let own = transaction as? PostgreSQLTransaction
                    #expect(try own?.rows(select, [], atMost: 1) { $0.text(0) } == ["on"])
                }
                guard case .committed = end else { throw StoreError(.write, "\(end)") }
                usleep(10_000)
            }
            let hasHeard = isHeard.load(ordering: .relaxed)
            #expect(hasHeard)
            second.close(isClean: true)
        }

        @Test func earlierTime_isFound_whenAnotherNodeStoredIt() throws {
            let nodes = [StoreUnderTest(try open(0)), StoreUnderTest(try open(1))]
            try nodes[0].insert([.sample(state: .scheduled).with { $0.due = 100 }])
            for node in nodes { #expect(try node.round { try $0.dueTimes() }.steady == 100) }
            let early = try nodes[0].insert([.sample(state: .scheduled).with { $0.due = 10 }])
            for node in nodes {
                let wall = Timestamp(milliseconds: 0)
                #expect(try node.round { try $0.due(steady: 50, wall: wall, limit: 9) }.map(\.id) == early)
                #expect(try node.round { try $0.dueTimes() }.steady == 10)
            }
        }

        @Test func life_isJudgedByTheTimeInWhichItCouldHaveBeenSeen() {
            func row(_ life: Int64, beat: Int64) -> Lives.Row {
                Lives.Row(life: life, beat: beat, lease: 5000, isOver: false, node: "", programs: [])
            }
            var lives = Lives()
            for second in 0...5 {
                #expect(
                    lives.look(at: [row(1, beat: 7), row(2, beat: Int64(second))], now: Int64(second) * 1000).isEmpty)
            }
            // The node stood still, or the database was away.
            #expect(lives.look(at: [row(1, beat: 8), row(2, beat: 5)], now: 100_000).isEmpty)
            #expect(lives.look(at: [row(1, beat: 8), row(2, beat: 5)], now: 101_000).isEmpty)
            #expect(lives.look(at: [row(1, beat: 8), row(2, beat: 5)], now: 103_000).isEmpty)
            // A clock that is set back counts for nothing.
            #expect(lives.look(at: [row(1, beat: 8), row(2, beat: 6)], now: 50_000).isEmpty)
            #expect(lives.look(at: [row(1, beat: 8), row(2, beat: 6)], now: 52_000).isEmpty)
            #expect(lives.look(at: [row(1, beat: 8), row(2, beat: 6)], now: 52_001).map(\.life) == [1])
        }
    }
#endif
