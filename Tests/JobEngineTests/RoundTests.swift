import DataSources
import DeferredKit
import Dispatch
import InMemoryStore
import JobModel
import JobCore
import JobEngine
import Synchronization
import TestSupport
import Testing

/// Rounds of the store, and what follows when they are not committed.
@Suite struct RoundTests {
    private static let value: JSON = ["source": ["type": "value", "value": 1]]
    private static let chain: JSON = [
        "source": ["type": "value", "value": 1], "then": [["then": ["return": "{{input}}"]]],
    ]

    @Test(arguments: [RoundEnd.undone(TestStore.error), .unknown(TestStore.error)])
    func request_fails_whenItsRoundIsNotCommitted(_ end: RoundEnd) async throws {
        try await TestEngine.with { test in
            test.store.faults.withLock { $0.ends = [end] }
            let answer = await test.engine.ask(
                .submit([try test.job(Self.value)]), for: TestEngine.user)
            guard case .failed(let error) = answer else { throw TestEngine.Unexpected("It did not fail.") }
            #expect(error.code == ProtocolError.Code.storage.rawValue)
            // The store works again, and nothing is left of it.
            let last = try await test.run(Self.value)
            #expect(last.id == 1)
            #expect(test.engine.status.storageFailure == nil)
        }
    }

    @Test func endOfARun_comesAgain_whenItsRoundIsNotCommitted() async throws {
        try await TestEngine.with { test in
            // The submission is committed, and what its link comes to is not.
            test.store.faults.withLock { $0.ends = [nil, .undone(TestStore.error)] }
            let row = try await test.run(Self.chain)
            #expect(row.state == .succeeded)
            #expect(row.outcomes.count == 2)
        }
    }

    @Test func inputThatFailsAlone_failsItsOwnJobOnly() async throws {
        try await TestEngine.with { test in
            let failure = RoundEnd.undone(TestStore.error)
            // Between them the probe is committed.
            test.store.faults.withLock { $0.ends = [nil, failure, nil, failure] }
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
            await test.store.until { $0.job(job)?.waiting == .timer }
            test.store.faults.withLock { _ = $0.unreadable.insert(job) }
            guard case .failed(let error) = await test.engine.ask(.change(job, .cancel), for: TestEngine.user) else {
                throw TestEngine.Unexpected("It was cancelled.")
            }
            #expect(error.code == ProtocolError.Code.storage.rawValue)
            let last = try await test.run(Self.chain)
            #expect(last.state == .succeeded)
        }
    }

    @Test func requests_areRefusedWithoutARound_whileTheStoreFails() async throws {
        try await TestEngine.with(hasRealClock: false) { test in
            test.store.faults.withLock { $0.isBroken = true }
            await #expect(throws: TestEngine.Refused.self) { try await test.submit(Self.value) }
            #expect(test.engine.status.storageFailure != nil)
            let begun = test.store.begun.withLock(\.self)
            for _ in 0..<10 {
                await #expect(throws: TestEngine.Refused.self) { try await test.submit(Self.value) }
            }
            #expect(await !test.engine.probe())
            await test.engine.ping().get()
            #expect(test.store.begun.withLock(\.self) == begun)
            // A second later it works again.
            test.store.faults.withLock { $0.isBroken = false }
            test.clock.milliseconds.withLock { $0 += 1000 }
            let last = try await test.run(Self.chain)
            #expect(last.state == .succeeded)
            #expect(test.engine.status.storageFailure == nil)
        }
    }

    @Test func timeOfASchedule_isNotSkipped_whenItsSpecCannotBeRead() async throws {
        try await TestEngine.with(hasRealClock: false) { test in
            let now = Timestamp(milliseconds: test.clock.milliseconds.withLock(\.self))
            let key = ScheduleKey(owner: TestEngine.user.uid, name: "s")
            let schedule = Schedule(key: key, timing: .every(60_000), setAt: now, specSize: 2)
            _ = await test.engine.ask(
                .setSchedule(NewSchedule(schedule, spec: Self.value.utf8)), for: TestEngine.user)
            test.store.faults.withLock { $0.failingScheduleReads = 1 }
            test.clock.milliseconds.withLock { $0 += 60_000 }
            #expect(await test.engine.probe())
            await test.store.until { [start = now.adding(seconds: 60)] in
                $0.allSchedules.contains { $0.skipped > 0 || $0.next.map { $0 > start } ?? false }
            }
            test.clock.milliseconds.withLock { $0 += 1000 }
            #expect(await test.engine.probe())
            await test.store.until { $0.allSchedules.contains { $0.submitted + $0.skipped > 0 } }
            #expect(test.store.rows.allSchedules.map(\.submitted) == [1])
        }
    }

    @Test func aStore_isSeenHoldingUpTheEngine() async throws {
        let store = TestStore()
        let gate = DispatchSemaphore(value: 0)
        let (rounds, round) = AsyncStream.makeStream(of: Void.self)
        try await TestEngine.with(store: store) { test in
            store.inRound.withLock {
                $0 = {
                    round.yield()
                    gate.wait()
                }
            }
            async let answer = test.engine.probe()
            for await _ in rounds { break }
            let ping = test.engine.ping()
            #expect(test.engine.secondsInStore > 0 && !ping.isResolved)
            store.inRound.withLock { $0 = nil }
            gate.signal()
            await ping.get()
            #expect(await answer)
        }
    }

    @Test func removalOfFiles_comesAgain_whenItsEndFailsAlone() async throws {
        let store = TestStore()
        _ = store.round { transaction throws(StoreError) in
            _ = try transaction.add(WorkRow(id: 0, kind: .removeParts, job: 1, owner: 7))
        }
        // In the first round, and alone.
        store.faults.withLock { $0.failingWorkEnds = 2 }
        let (rounds, round) = AsyncStream.makeStream(of: Void.self)
        store.inRound.withLock { $0 = { round.yield() } }
        try await TestEngine.with(store: store, hasRealClock: false) { test in
            for await _ in rounds { if store.faults.withLock({ $0.failingWorkEnds == 0 }) { break } }
            #expect(await test.engine.probe())
            #expect(store.rows.workCount == 1)
            test.clock.milliseconds.withLock { $0 += 10_000 }
            #expect(await test.engine.probe())
            await store.until { $0.workCount == 0 }
        }
    }

    @Test func removalOfFiles_comesAgain_whenTheLifeIsOverMeanwhile() async throws {
        let store = TestStore()
        _ = store.round { transaction throws(StoreError) in
            _ = try transaction.add(WorkRow(id: 0, kind: .removeParts, job: 1, owner: 7))
        }
        store.faults.withLock { $0.failingWorkEnds = 1 }
        // After the round that fails, the first round is the probe, and the second has the end of the work alone.
        let later = Mutex(0)
        store.inRound.withLock { hook in
            hook = { [unowned store] in
                guard store.faults.withLock({ $0.failingWorkEnds == 0 }) else { return }
                let number = later.withLock { count in
                    count += 1
                    return count
                }
                if number == 2 { store.begin(life: 2, wasStopped: false) }
            }
        }
        try await TestEngine.with(store: store) { _ in
            await store.until { $0.workCount == 0 }
            #expect(store.life == 2)
        }
    }

    /// A crash could still bring the round back, so no request of it is told that it failed.
    @Test func unknownEnd_isTold_onceALaterRoundIsCommitted() async throws {
        try await TestEngine.with(hasRealClock: false) { test in
            #expect(await test.engine.probe())
            test.store.faults.withLock { faults in
                faults.ends = [.unknown(TestStore.error)]
                faults.isBroken = true
            }
            let (rounds, round) = AsyncStream.makeStream(of: Void.self)
            test.store.inRound.withLock { $0 = { round.yield() } }
            let told = Mutex<CoreAnswer?>(nil)
            let job = try test.job(Self.value)
            test.engine.ask(.submit([job]), for: TestEngine.user) { answer in told.withLock { $0 = answer } }
            var begun = 0
            for await _ in rounds {
                begun += 1
                if begun == 2 { break }
            }
            await #expect(throws: TestEngine.Refused.self) { try await test.submit(Self.chain) }
            #expect(told.withLock { $0 == nil })
            test.store.faults.withLock { $0.isBroken = false }
            test.clock.milliseconds.withLock { $0 += 1000 }
            #expect(await test.engine.probe())
            guard case .failed? = told.withLock(\.self) else { throw TestEngine.Unexpected("It was not told.") }
            #expect(test.store.rows.jobCount == 0)
        }
    }

    private final class FirstCall: Sendable {
        let isTrue = Atomic(true)
    }

    @Test func longEnds_areSpreadOverRounds() async throws {
        // Two of them close a round.
        let (count, size) = (12, 600_000)
        try await TestEngine.with {
            $0.core.limits.inlineResult = 1 << 20
            $0.core.queues = [QueueSettings(name: "default", concurrency: count, perUser: count, isSuspended: true)]
        } _: { test in
            let text = JSON.string(String(repeating: "x", count: size))
            for _ in 0..<count { _ = try await test.submit(["source": ["type": "value", "value": text]]) }
            let (blocks, blocked) = AsyncStream.makeStream(of: Void.self)
            let release = DispatchSemaphore(value: 0)
            // The round behind the one that starts them waits until all runs have ended.
            let isFirst = FirstCall()
            test.store.inRound.withLock { hook in
                hook = {
                    if isFirst.isTrue.exchange(false, ordering: .relaxed) { return }
                    blocked.yield()
                    release.wait()
                    release.signal()
                }
            }
            var change = QueueChange()
            change.isSuspended = false
            guard case .queue = await test.engine.ask(.setQueue("default", change), for: TestEngine.admin) else {
                throw TestEngine.Unexpected("The queue is suspended.")
            }
            for await _ in blocks { break }
            await test.settle(TestEngine.user.uid)
            let begun = test.store.begun.withLock(\.self)
            release.signal()
            await test.store.until { $0.allJobs.allSatisfy(\.state.isTerminal) }
            #expect(test.store.begun.withLock(\.self) - begun >= count / 2)
        }
    }

    @Test func runs_keepTheirSlots_afterAnUndoneRound() async throws {
        try await TestEngine.with {
            $0.core.queues[0].concurrency = 1
        } _: { test in
            let job = try await test.submit(Self.chain)
            test.store.faults.withLock { $0.ends = [.undone(TestStore.error)] }
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
                if number % 7 == 0 { _ = await test.engine.ask(.change(jobs[number], .cancel), for: TestEngine.user) }
            }
            await test.store.until { $0.allJobs.allSatisfy(\.state.isTerminal) && $0.workCount == 0 }
            test.store.faults.withLock { $0.random = nil }
            // A round after the last end may have failed, and requests are refused until a later one has not.
            while await !test.engine.probe() {}
            let (rows, counts) = (test.store.rows.allJobs.map(\.state), test.store.rows.counts)
            #expect(counts.values.reduce(0) { $0 + $1.jobs } == rows.count)
            #expect(test.engine.status.core.counts == counts)
            #expect(test.engine.board.slots.isEmpty)
        }
    }
}
