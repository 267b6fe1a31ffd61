import JobModel
import RoundCore
import RoundEngine
import Synchronization
import TestSupport
import Testing

/// Rounds of the store, and what follows when they are not committed.
@Suite struct RoundTests {
    private static let value: JSON = ["source": ["type": "value", "value": 1]]
    private static let chain: JSON = [
        "source": ["type": "value", "value": 1], "then": [["then": ["return": "{{input}}"]]],
    ]

    @Test(arguments: [RoundEnd.undone(MemoryStore.error), .unknown(MemoryStore.error)])
    func request_fails_whenItsRoundIsNotCommitted(_ end: RoundEnd) async throws {
        try await TestEngine.with { test in
            test.store.faults.withLock { $0.ends = [end] }
            let answer = await test.engine.ask(
                .submit([try test.engine.admission.job(Self.value, from: TestEngine.user)]), for: TestEngine.user)
            guard case .failed(let error) = answer else { throw TestEngine.Unexpected("It did not fail.") }
            #expect(error.code == .storage)
            // The store works again, and nothing is left of it.
            let last = try await test.run(Self.value)
            #expect(last.id == 1)
            #expect(test.engine.status.storageFailure == nil)
        }
    }

    @Test func endOfARun_comesAgain_whenItsRoundIsNotCommitted() async throws {
        try await TestEngine.with { test in
            // The submission is committed, and what its link comes to is not.
            test.store.faults.withLock { $0.ends = [nil, .undone(MemoryStore.error)] }
            let row = try await test.run(Self.chain)
            #expect(row.state == .succeeded)
            #expect(row.outcomes.count == 2)
        }
    }

    @Test func endOfARun_comesAgainAlone_whenItFailsTwice() async throws {
        try await TestEngine.with { test in
            let failure = RoundEnd.undone(MemoryStore.error)
            // Between them the probe is committed.
            test.store.faults.withLock { $0.ends = [nil, failure, nil, failure] }
            let last = try await test.run(Self.chain)
            #expect(last.state == .succeeded)
        }
    }

    @Test func inputThatFailsAlone_failsItsOwnJobOnly() async throws {
        try await TestEngine.with { test in
            let failure = RoundEnd.undone(MemoryStore.error)
            test.store.faults.withLock { $0.ends = [nil, failure, nil, failure, nil, failure] }
            let row = try await test.run(Self.chain)
            #expect(row.state == .failed)
            #expect(row.carried?.error?.kind == .storage)
            let last = try await test.run(Self.chain)
            #expect(last.state == .succeeded)
        }
    }

    @Test func jobThatCannotBeRead_holdsNoOtherUp() async throws {
        try await TestEngine.with { test in
            let job = try await test.submit(["source": ["type": "timer", "seconds": 3600]])
            await test.store.until { $0.jobs[job]?.waiting == .timer }
            test.store.faults.withLock { _ = $0.unreadable.insert(job) }
            guard case .failed(let error) = await test.engine.ask(.cancel(job), for: TestEngine.user) else {
                throw TestEngine.Unexpected("It was cancelled.")
            }
            #expect(error.code == .storage)
            let last = try await test.run(Self.chain)
            #expect(last.state == .succeeded)
        }
    }

    @Test func requests_areRefusedWithoutARound_whileTheStoreFails() async throws {
        try await TestEngine.with(hasRealClock: false) { test in
            test.store.faults.withLock { $0.isBroken = true }
            await #expect(throws: TestEngine.Refused.self) { try await test.submit(Self.value) }
            #expect(test.engine.status.storageFailure != nil)
            let begun = test.store.rounds.withLock(\.begun)
            for _ in 0..<10 {
                await #expect(throws: TestEngine.Refused.self) { try await test.submit(Self.value) }
            }
            #expect(await !test.engine.probe())
            #expect(test.store.rounds.withLock(\.begun) == begun)
            // A second later it works again.
            test.store.faults.withLock { $0.isBroken = false }
            test.clock.milliseconds.withLock { $0 += 1000 }
            let last = try await test.run(Self.chain)
            #expect(last.state == .succeeded)
            #expect(test.engine.status.storageFailure == nil)
        }
    }

    @Test func runs_keepTheirSlots_afterAnUndoneRound() async throws {
        try await TestEngine.with {
            $0.core.queues[0].concurrency = 1
        } _: { test in
            let job = try await test.submit(Self.chain)
            test.store.faults.withLock { $0.ends = [.undone(MemoryStore.error)] }
            _ = await test.engine.probe()
            try await test.end(of: job)
            for _ in 0..<3 {
                let row = try await test.run(Self.chain)
                #expect(row.state == .succeeded)
            }
        }
    }

    @Test(arguments: UInt64(1)...8)
    func jobs_end_whicheverRoundsFail(_ seed: UInt64) async throws {
        let each: JSON = [
            "source": [
                "type": "each", "in": [1, 2, 3], "job": ["source": ["type": "value", "value": "{{item}}"]],
                "concurrency": 2,
            ]
        ]
        let timer: JSON = ["source": ["type": "timer", "seconds": 0.001], "then": [["finally": ["return": 1]]]]
        try await TestEngine.with { test in
            test.store.faults.withLock { $0.random = SeededGenerator(seed: seed) }
            var jobs: [JobID] = []
            for number in 0..<60 {
                let spec = [Self.value, Self.chain, each, timer][number % 4]
                // A request whose round failed is made again.
                while true {
                    do { jobs.append(try await test.submit(spec)) } catch is TestEngine.Refused { continue }
                    break
                }
                if number % 7 == 0 { _ = await test.engine.ask(.cancel(jobs[number]), for: TestEngine.user) }
            }
            await test.store.until { $0.jobs.values.allSatisfy(\.state.isTerminal) && $0.work.isEmpty }
            test.store.faults.withLock { $0.random = nil }
            #expect(await test.engine.probe())
            let (rows, counts) = test.store.tables.withLock { ($0.jobs.values.map(\.state), $0.counts) }
            #expect(counts.values.reduce(0) { $0 + $1.jobs } == rows.count)
            #expect(test.engine.status.counts == counts)
            #expect(test.engine.status.runs == 0)
            // Hardly any input fails three times, and only those fail their jobs.
            #expect(rows.count { $0 == .failed } < rows.count / 4)
        }
    }

    @Test func manyRequests_shareRounds() async throws {
        try await TestEngine.with { test in
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<500 { group.addTask { _ = try? await test.submit(Self.value) } }
            }
            await test.store.until { $0.jobs.values.filter(\.state.isTerminal).count == 500 }
            // What others see follows the commit.
            _ = await test.engine.probe()
            #expect(test.engine.status.jobs()[.succeeded] == 500)
            #expect(test.engine.status.totals().submitted == 500)
        }
    }
}
