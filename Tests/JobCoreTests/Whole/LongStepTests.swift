import JobModel
import Testing

@testable import JobCore

/// Steps that take several milliseconds are done when it is their owner's turn.
@Suite struct LongStepTests {
    private static let long = String(repeating: "l", count: 5_000)
    private static let longReturn = url("a", #""then":[{"then":{"return":["{{input}}","\#(long)"]}}]"#)

    @Test func longStep_isDone_whenItIsItsOwnersTurn() throws {
        let driver = CoreDriver()
        driver.holdsTurns = true
        let id = try driver.submit(Self.longReturn)
        // So is its source.
        #expect(driver.heldTurns == [1] && driver.atWork.isEmpty)
        driver.releaseTurns()
        try driver.end(id, .success(1))
        #expect(driver.heldTurns == [1] && driver.stored(id)?.state == .running)
        // Meanwhile others go on, and what of its owner is short.
        let others = try driver.submit(url("b"), as: .two)
        let short = try driver.submit(
            #"{"source":{"type":"value","value":1},"then":[{"then":{"return":"{{input}}"}}]}"#)
        #expect(driver.atWork == [others] && driver.stored(short)?.state == .succeeded)
        driver.releaseTurns()
        #expect(driver.stored(id)?.carried == .success([1, .string(Self.long)]))
        try driver.end(others)
        driver.expectQuiet()
    }

    /// Few expressions can fill in much, and many little.
    @Test(arguments: [(10, 3, false), (4_000, 1, false), (9_000, 100, true), (200, 300, true), (3, 900, true)])
    func stepIsLong_byWhatItsExpressionsMayFillIn(size: Int, count: Int, isLong: Bool) throws {
        let driver = CoreDriver()
        let expressions = Array(repeating: #""{{input}}""#, count: count).joined(separator: ",")
        let id = try driver.submit(
            #"{"source":{"type":"json","url":"http://a/"},"then":[{"then":{"return":[\#(expressions)]}}]}"#)
        driver.releaseTurns()
        driver.holdsTurns = true
        try driver.end(id, .success(.string(String(repeating: "x", count: size))))
        #expect(driver.heldTurns.isEmpty != isLong)
        driver.releaseTurns()
        #expect(driver.stored(id)?.state == .succeeded)
    }

    @Test func ownersHaveOneTurnAtATime() throws {
        let driver = CoreDriver()
        driver.holdsTurns = true
        let ids = try (0..<3).map { _ in try driver.submit(Self.longReturn) }
        let other = try driver.submit(Self.longReturn, as: .two)
        #expect(driver.heldTurns == [1, 2])
        driver.releaseTurns()
        #expect(driver.atWork == [ids[0], other] && driver.heldTurns == [1])
        driver.releaseTurns()
        driver.releaseTurns()
        #expect(driver.heldTurns.isEmpty)
        driver.holdsTurns = false
        driver.endAll()
        driver.expectQuiet()
    }

    /// Each has a slot and a host meanwhile.
    @Test func nothingMoreStarts_whereMuchWaitsForItsOwnersTurn() throws {
        let driver = CoreDriver { $0.perHost = 6 }
        driver.holdsTurns = true
        for _ in 0..<6 { try driver.submit(url("a", #""then":[{"fail":{"return":"\#(Self.long)"}}]"#)) }
        let other = try driver.submit(url("a"), as: .two)
        #expect(driver.atWork == [other] && driver.core.inspection.waitingForTurns == 3)
        while !driver.heldTurns.isEmpty { driver.releaseTurns() }
        #expect(driver.atWork.count == 6, "those of the first owner have their share of the host")
        driver.holdsTurns = false
        driver.endAll()
        driver.expectQuiet()
    }

    private static let short = #"{"source":{"type":"value","value":1}}"#
    private static let waiting = PendingJobs.mostShared * 3

    /// A core with short jobs of the first user whose outcomes are being stored, as many as may be.
    private func storing(while users: ConnectedUsers) throws -> CoreDriver {
        let driver = CoreDriver { $0.queues = [QueueSettings(name: "default", concurrency: 1_000)] }
        driver.feed(.users(users))
        driver.holdsWrites = true
        for _ in 0..<Self.waiting { _ = try driver.requestSubmit(Self.short) }
        driver.releaseWrites(Self.waiting)
        return driver
    }

    /// What others submit is stored behind them.
    @Test func fewOutcomesOfAnOwnerAreStoredAtOnce_whileOthersAreThere() throws {
        let driver = try storing(while: .one(2))
        #expect(driver.heldWrites.count == PendingJobs.mostShared)
        driver.releaseWrites(PendingJobs.mostShared - PendingJobs.fewShared - 1)
        #expect(driver.heldWrites.count == PendingJobs.fewShared + 1, "nothing more starts until few are left")
        driver.releaseWrites(1)
        #expect(driver.heldWrites.count == PendingJobs.mostShared)
        // Others start whatever the first does.
        _ = try driver.requestSubmit(Self.short, as: .two)
        driver.releaseWrites(PendingJobs.mostShared + 1)
        let isOther = driver.heldWrites.map { held in
            if case .save(let jobs) = held.write { jobs[0].owner == 2 } else { false }
        }
        #expect(isOther.contains(true))
        driver.holdsWrites = false
        driver.releaseWrites()
        driver.expectQuiet()
    }

    @Test func outcomesAreStoredAtOnce_whileNobodyElseIsThere() throws {
        let driver = try storing(while: .one(1))
        #expect(driver.heldWrites.count == Self.waiting)
        driver.holdsWrites = false
        driver.releaseWrites()
        driver.expectQuiet()
    }

    @Test func ownersGoOn_onceTheOthersHaveGone() throws {
        let driver = try storing(while: .several)
        #expect(driver.heldWrites.count == PendingJobs.mostShared)
        driver.feed(.users(.one(1)))
        #expect(driver.heldWrites.count == Self.waiting)
        driver.holdsWrites = false
        driver.releaseWrites()
        driver.expectQuiet()
    }

    @Test func whatWaitsForItsTurn_isCancelled_passesItsDeadline_andGoesOnAfterARestart() throws {
        let driver = CoreDriver()
        driver.holdsTurns = true
        let cancelled = try driver.submit(Self.longReturn)
        driver.releaseTurns()
        try driver.end(cancelled, .success(1))
        let late = try driver.submit(url("a", #""deadline":5,"then":[{"fail":{"return":"\#(Self.long)"}}]"#))
        let kept = try driver.submit(Self.longReturn)
        let request = driver.ask(.cancel(cancelled), as: .one)
        #expect(driver.answer(to: request) != nil && driver.stored(cancelled)?.state == .cancelled)
        driver.advance(6)
        #expect(driver.stored(late)?.carried?.kind == .deadline)
        while !driver.heldTurns.isEmpty, driver.atWork.isEmpty { driver.releaseTurns() }
        #expect(driver.atWork == [kept])
        try driver.end(kept, .success(2))
        #expect(driver.heldTurns == [1])
        driver.crash()
        driver.holdsTurns = false
        driver.restart()
        #expect(driver.stored(kept)?.carried == .success([2, .string(Self.long)]))
        driver.expectQuiet()
    }

    /// The turn can come at the time of the deadline, before the timer is looked at.
    @Test func turnAtTheDeadline_comesTooLate() throws {
        let driver = CoreDriver()
        driver.holdsTurns = true
        let id = try driver.submit(url("a", #""deadline":5,"then":[{"fail":{"return":"\#(Self.long)"}}]"#))
        driver.now.wall = driver.now.wall.adding(seconds: 6)
        driver.releaseTurns()
        #expect(driver.atWork.isEmpty && driver.stored(id)?.carried?.kind == .deadline)
        driver.expectQuiet()
    }

    @Test func hostThatAsksForItMeanwhile_isLeftAlone() throws {
        let driver = CoreDriver()
        let asked = try driver.submit(url("a", #""retry":{"max":1,"jitter":false}"#))
        driver.holdsTurns = true
        let id = try driver.submit(url("a", #""then":[{"fail":{"return":"\#(Self.long)"}}]"#))
        var error = JobError(.http, "Too many.", retryable: true)
        error.retryAfter = 30
        try driver.end(asked, .failure(error))
        driver.releaseTurns()
        #expect(driver.atWork.isEmpty)
        driver.holdsTurns = false
        driver.releaseTurns()
        driver.advance(29)
        #expect(driver.atWork.isEmpty)
        driver.advance(2)
        #expect(driver.atWork.sorted() == [asked, id])
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func hostOfALongStep_isKnown_whereItIsWrittenDown() throws {
        let driver = CoreDriver()
        let id = try driver.submit(
            url("a", #""retry":{"max":1,"initial":5,"jitter":false},"then":[{"then":{"return":"\#(Self.long)"}}]"#))
        driver.endAll { _ in .passing }
        #expect(driver.stored(id)?.state == .scheduled && driver.stored(id)?.host != nil)
        driver.advance(6)
        driver.endAll()
        #expect(driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    /// What subscribers are told of a large job is written on the engine.
    @Test func endOfALargeJob_isTold_whenItIsItsOwnersTurn() throws {
        let driver = CoreDriver()
        let large = Outcome.success(.string(String(repeating: "r", count: 100_000)))
        driver.holdsTurns = true
        let unwatched = try driver.submit(url("a"))
        try driver.end(unwatched, large)
        #expect(driver.core.table[unwatched] == nil && driver.heldTurns.isEmpty)
        driver.ask(.watch(WatchScope(.all), 7), as: .root)
        let watched = try driver.submit(url("a"))
        try driver.end(watched, large)
        #expect(driver.stored(watched)?.state == .succeeded && driver.heldTurns == [1])
        #expect(!driver.told.contains { $0.change.job == watched && $0.change.isLast })
        driver.releaseTurns()
        #expect(driver.told.contains { $0.change.job == watched && $0.change.isLast })
        // One that is stopped meanwhile goes on with that.
        let stopped = try driver.submit(url("a", #""then":[{"then":\#(step("b"))}]"#))
        try driver.end(stopped, large)
        let cancel = driver.ask(.cancel(stopped), as: .one)
        #expect(driver.stored(stopped)?.state == .cancelled)
        while !driver.heldTurns.isEmpty { driver.releaseTurns() }
        #expect(driver.answer(to: cancel) != nil && driver.atWork.isEmpty)
        driver.feed(.unsubscribe(7))
        driver.expectQuiet()
    }

    @Test func manyChildren_areMadeInSeveralTurns() throws {
        let driver = CoreDriver()
        driver.holdsTurns = true
        let items = (0..<100).map(String.init).joined(separator: ",")
        let list = try driver.submit(
            #"{"source":{"type":"each","in":[\#(items)],"job":\#(url("a", #""delay":9,"label":"{{item}}""#))}}"#)
        var turns = 0
        while !driver.heldTurns.isEmpty, turns < 100 {
            #expect(driver.stored(list)?.children == 0)
            turns += 1
            driver.releaseTurns()
        }
        #expect(turns > 2 && driver.stored(list)?.children == 100)
        // One that is given up is not gone on with.
        let other = try driver.submit(
            #"{"source":{"type":"each","in":[\#(items)],"job":\#(url("a", #""delay":9"#))}}"#)
        #expect(driver.heldTurns == [1])
        driver.ask(.cancel(other), as: .one)
        driver.releaseTurns()
        #expect(driver.heldTurns.isEmpty && driver.stored(other)?.children == 0)
        driver.ask(.cancel(list), as: .one)
        driver.expectQuiet()
    }

    /// 16 MiB of an owner's may be on their way, and a page that was read just before.
    private static let mostWaiting = 64

    @Test func jobsThatWaitForTheirTurn_areBounded_howeverManyTimersEnd() throws {
        let driver = CoreDriver()
        let large = String(repeating: "l", count: 500_000)
        let spec = #"{"source":{"type":"timer","seconds":100},"then":[{"then":{"return":["{{input}}","\#(large)"]}}]}"#
        let ids = try (0..<100).map { _ in try driver.submit(spec) }
        #expect(driver.core.inspection.restingJobs == 100)
        driver.holdsTurns = true
        driver.advance(100)
        #expect(driver.core.inspection.residentJobs <= Self.mostWaiting && !driver.heldTurns.isEmpty)
        while !driver.heldTurns.isEmpty {
            driver.releaseTurns()
            #expect(driver.core.inspection.residentJobs <= Self.mostWaiting)
        }
        #expect(ids.allSatisfy { driver.stored($0)?.state == .succeeded })
        driver.holdsTurns = false
        driver.expectQuiet()
    }

    @Test func endsThatWaitToBeTold_areBounded_howeverFastJobsEnd() throws {
        let driver = CoreDriver()
        let large = Outcome.success(.string(String(repeating: "r", count: 500_000)))
        driver.ask(.watch(WatchScope(.all), 7), as: .root)
        let ids = try (0..<100).map { _ in try driver.submit(url("a")) }
        driver.holdsTurns = true
        // Nothing new starts while so many wait to be told.
        while let id = driver.atWork.first { try driver.end(id, large) }
        #expect(driver.core.inspection.residentJobs <= Self.mostWaiting && !driver.heldTurns.isEmpty)
        while !driver.heldTurns.isEmpty {
            driver.releaseTurns()
            while let id = driver.atWork.first { try driver.end(id, large) }
            #expect(driver.core.inspection.residentJobs <= Self.mostWaiting)
        }
        #expect(ids.allSatisfy { driver.stored($0)?.state == .succeeded })
        driver.feed(.unsubscribe(7))
        driver.expectQuiet()
    }

    /// What a step makes can be much larger than what it is counted as before. Of one owner 16 MiB are much, of all 32, and each
    /// owner alone may make as much as a document holds.
    @Test(arguments: [([Caller.one, .one], 9 << 20), ([.one, .two], 17 << 20)])
    func nextLongStep_waits_whileMuchIsBeingStored(callers: [Caller], size: Int) throws {
        let driver = CoreDriver()
        let large = Outcome.success(.string(String(repeating: "l", count: size)))
        driver.holdsTurns = true
        let ids = try zip(["a", "b"], callers).map { host, caller in
            let spec = url(host, #""then":[{"then":{"return":["{{input}}","{{input}}"]}},{"then":{"return":1}}]"#)
            return try driver.submit(spec, as: caller)
        }
        for id in ids { try driver.end(id, large) }
        #expect(driver.heldTurns == (callers[0] == callers[1] ? [1] : [1, 2]))
        driver.holdsWrites = true
        driver.releaseTurns()
        #expect(driver.heldWrites.count == 1)
        driver.releaseTurns()
        #expect(driver.heldWrites.count == 1 && driver.heldTurns.isEmpty, "the second waits for what the first made")
        driver.holdsWrites = false
        driver.releaseWrites()
        while !driver.heldTurns.isEmpty { driver.releaseTurns() }
        #expect(ids.allSatisfy { driver.stored($0)?.state == .succeeded })
        driver.holdsTurns = false
        driver.expectQuiet()
    }

    /// Half a million digits are a MiB of text and 16 of memory.
    @Test func smallValues_countByWhatTheyTakeInMemory() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a"))
        driver.holdsWrites = true
        try driver.end(id, .success(.array(Array(repeating: 1, count: 530_000))))
        #expect(driver.core.hasTooMuchPending(of: 1), "nothing new of its owner starts")
        driver.holdsWrites = false
        driver.releaseWrites()
        #expect(!driver.core.hasTooMuchPending(of: 1))
        driver.expectQuiet()
    }

    /// Each alone would be allowed.
    @Test func childrenOfSeveralLists_areBoundedTogether_thoughTheyAreMadeInTurns() throws {
        let driver = CoreDriver { $0.limits.queuedJobsPerUser = 150 }
        driver.holdsTurns = true
        let items = (0..<100).map(String.init).joined(separator: ",")
        let spec = #"{"source":{"type":"each","in":[\#(items)],"job":\#(url("a", #""delay":9,"label":"{{item}}""#))}}"#
        let lists = try [driver.submit(spec), driver.submit(spec)]
        while !driver.heldTurns.isEmpty { driver.releaseTurns() }
        #expect(lists.map { driver.stored($0)?.children } == [100, 0])
        #expect(driver.stored(lists[1])?.carried?.kind == .tooLarge)
        driver.ask(.cancel(lists[0]), as: .one)
        driver.expectQuiet()
    }

    /// Sizes are reckoned once; the store and the quotas go by them.
    @Test(arguments: ["all", "settled", "first"]) func listsKnowTheSizesOfTheirResults(mode: String) throws {
        let driver = CoreDriver()
        for count in 0...3 {
            for outcome: Outcome in [.success(["é\n": [1, 2.5, "x"]]), .lasting] {
                let jobs = Array(repeating: url("a"), count: count).joined(separator: ",")
                let id = try driver.submit(#"{"source":{"type":"list","mode":"\#(mode)","jobs":[\#(jobs)]}}"#)
                driver.endAll { _ in outcome }
                let job = try #require(driver.stored(id))
                #expect(job.carried?.storedSize == job.carriedSize, "\(count), \(outcome)")
                #expect(job.carried?.measuredSize.memory == job.carriedMemory, "\(count), \(outcome)")
            }
        }
        driver.expectQuiet()
    }
}
