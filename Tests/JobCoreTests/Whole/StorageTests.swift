import JobModel
import Testing

@testable import JobCore

/// A storage that fails, quotas, and what is removed in time.
@Suite struct StorageTests {
    // MARK: - A storage that fails

    @Test func outcome_isStored_onceThatWorksAgain() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a", #""then":[{"then":\#(step("b"))}]"#))
        let wait = driver.ask(.wait([id], timeout: nil))
        driver.failsWrite = { _ in true }
        try driver.end(id)
        #expect(driver.core.inspection.storageFails && driver.started.count == 1)
        let refused = try driver.submitted(driver.requestSubmit(url()))
        guard case .failure(let error) = refused[0] else { return #expect(Bool(false)) }
        #expect(error.code == .storage)
        driver.advance(3)
        #expect(driver.core.inspection.storageFails)
        driver.failsWrite = { _ in false }
        driver.advance(1)
        #expect(!driver.core.inspection.storageFails && driver.started.map(\.link) == [0, 1])
        driver.endAll()
        #expect(driver.stored(id)?.state == .succeeded && driver.answer(to: wait) != nil)
        driver.expectQuiet()
    }

    @Test func nothingStarts_whileNothingCanBeStored() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 1 }
        let ids = try (0..<3).map { _ in try driver.submit(url()) }
        driver.failsWrite = { _ in true }
        try driver.end(ids[0])
        #expect(driver.atWork == [ids[1]], "it was not known yet")
        try driver.end(ids[1])
        #expect(driver.atWork.isEmpty)
        driver.failsWrite = { _ in false }
        driver.advance(2)
        #expect(driver.atWork == [ids[2]])
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func cancel_failsAndIsCarriedOutAllTheSame_whereItCannotBeStored() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url())
        driver.failsWrite = { _ in true }
        let request = driver.ask(.cancel(id))
        #expect(driver.code(request) == .storage)
        driver.failsWrite = { _ in false }
        driver.advance(2)
        #expect(driver.stored(id)?.state == .cancelled)
        driver.expectQuiet()
    }

    @Test func retry_thatCannotBeStored_doesNotHappenLater() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url())
        try driver.end(id, .lasting)
        driver.failsWrite = { _ in true }
        let wait = driver.ask(.wait([id], timeout: nil))
        let request = driver.ask(.retry(id, from: .failed))
        #expect(driver.code(request) == .storage && driver.answer(to: wait) != nil)
        #expect(driver.state(id) == .failed)
        driver.failsWrite = { _ in false }
        driver.advance(5)
        #expect(driver.stored(id)?.state == .failed && driver.started.count == 1)
        driver.expectQuiet()
        driver.ask(.retry(id, from: .failed))
        driver.endAll()
        #expect(driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test func retry_thatRemovedItsChildren_goesOnOnceItCanBeStored() throws {
        let driver = CoreDriver()
        let id = try driver.submit(#"{"source":{"type":"list","mode":"all","jobs":[\#(url("a"))]}}"#)
        driver.endAll { _ in .lasting }
        #expect(driver.stored(id)?.state == .failed)
        driver.failsWrite = { if case .save = $0 { true } else { false } }
        #expect(driver.code(driver.ask(.retry(id, from: .start))) == .storage)
        driver.failsWrite = { _ in false }
        driver.advance(2)
        driver.endAll()
        #expect(driver.stored(id)?.state == .succeeded && driver.stored(id)?.children == 1)
        driver.expectQuiet()
    }

    @Test func everyWrite_canFailOnce() throws {
        let spec =
            #"{"source":{"type":"list","jobs":[\#(url("a")),\#(url("b", #""delay":5"#))],"concurrency":1},"then":[{"both":\#(step("c"))},{"finally":\#(step("f"))}]}"#
        for failing in 0..<12 {
            let driver = CoreDriver()
            let submitted = try driver.submit(spec)
            var count = 0
            driver.failsWrite = { _ in
                count += 1
                return count == failing
            }
            for _ in 0..<10 {
                driver.endAll()
                driver.advance(2)
            }
            #expect(driver.stored(submitted)?.state.isTerminal == true, "write \(failing) fails")
            driver.expectQuiet()
        }
    }

    @Test func probe_isAnswered_alsoWhereTheStorageFails() {
        let driver = CoreDriver()
        driver.failsWrite = { _ in true }
        let request = driver.ask(.probe, as: .root)
        guard case .done = driver.answer(to: request) else { return #expect(Bool(false)) }
        #expect(driver.core.inspection.storageFails && driver.core.overallStatistics.storageFailure != nil)
    }

    /// Nobody else is to be told that a job was accepted meanwhile, whatever it was that failed.
    @Test func storage_isKnownToFail_whateverCouldNotBeWritten() throws {
        let writes: [(CoreDriver, JobID) throws -> RequestID] = [
            { driver, _ in try driver.requestSubmit(url()) },
            { driver, id in driver.ask(.remove(id)) },
            { driver, id in driver.ask(.retry(id, from: .failed)) },
            { driver, _ in driver.ask(.setQueue("new", QueueChange(concurrency: 2)), as: .root) },
            { driver, _ in try driver.requestSet("other", every: 1000) },
            { driver, _ in driver.ask(.removeSchedule(ScheduleKey(owner: 1, name: "s"))) },
            { driver, _ in driver.ask(.suspendSchedule(ScheduleKey(owner: 1, name: "s"), isSuspended: true)) },
            { driver, _ in driver.ask(.runSchedule(ScheduleKey(owner: 1, name: "s"))) },
        ]
        for (index, write) in writes.enumerated() {
            let driver = CoreDriver()
            try driver.set("s", every: 1000)
            let list = try driver.submit(
                #"{"source": {"type": "list", "mode": "all", "jobs": [\#(url())]}, "retry": {"max": 0}}"#)
            driver.endAll { _ in .lasting }
            #expect(driver.state(list) == .failed)
            driver.failsWrite = { _ in true }
            _ = try write(driver, list)
            #expect(driver.core.inspection.storageFails, "\(index)")
            driver.failsWrite = { _ in false }
            driver.advance(1)
            #expect(!driver.core.inspection.storageFails, "\(index)")
        }
    }

    @Test func removal_fails_whereItCannotBeStored() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url())
        driver.endAll()
        driver.failsWrite = { _ in true }
        #expect(driver.code(driver.ask(.remove(id))) == .storage)
        driver.failsWrite = { _ in false }
        guard case .done = driver.answer(to: driver.ask(.remove(id))) else { return #expect(Bool(false)) }
        driver.expectQuiet()
    }

    // MARK: - Quotas

    func codes(_ driver: CoreDriver, _ request: RequestID) throws -> [CoreError.Code?] {
        try driver.submitted(request).map { if case .failure(let error) = $0 { error.code } else { nil } }
    }

    @Test func waitingJobs_areBounded_byOwnerAndInAll() throws {
        let driver = CoreDriver {
            $0.limits.queuedJobsPerUser = 3
            $0.limits.queuedJobs = 5
            $0.queues[0].isSuspended = true
        }
        let request = try driver.requestSubmit(url(), url(), url("a", #""delay":9"#), url())
        #expect(try codes(driver, request) == [nil, nil, nil, .busy(retryAfter: 1)])
        #expect(
            try codes(driver, driver.requestSubmit(url(), url(), url(), as: .two)) == [nil, nil, .busy(retryAfter: 1)])
        driver.ask(.cancel(1))
        #expect(try codes(driver, driver.requestSubmit(url())) == [nil])
        driver.expectCounted()
    }

    @Test func jobsThatAreBeingStored_countToo() throws {
        let driver = CoreDriver {
            $0.limits.queuedJobsPerUser = 3
            $0.queues[0].isSuspended = true
        }
        driver.holdsWrites = true
        let first = try driver.requestSubmit(url(), url())
        let second = try driver.requestSubmit(url(), url())
        driver.holdsWrites = false
        driver.releaseWrites()
        #expect(try codes(driver, first) == [nil, nil] && codes(driver, second) == [nil, .busy(retryAfter: 1)])
        #expect(driver.core.inspection.submitting == 0)
    }

    @Test func childrenCount_amongTheWaitingJobs() throws {
        let driver = CoreDriver {
            $0.limits.queuedJobsPerUser = 5
        }
        let later = url("a", #""delay":99"#)
        let list = #"{"source":{"type":"list","jobs":[\#(later),\#(later),\#(later)]}}"#
        let first = try driver.submit(list)
        #expect(driver.stored(first)?.children == 3)
        let second = try driver.submit(#"{"source":{"type":"list","jobs":[\#(url()),\#(url()),\#(url()),\#(url())]}}"#)
        #expect(driver.stored(second)?.carried?.kind == .tooLarge && driver.stored(second)?.children == 0)
        driver.advance(99)
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func storedBytes_areBounded_forAnOwner() throws {
        let driver = CoreDriver { $0.storedPerUser = 3000 }
        let id = try driver.submit(url())
        try driver.end(id, .success(.string(String(repeating: "x", count: 4000))))
        #expect(driver.stored(id)?.carried?.kind == .tooLarge, "the result cannot be kept")
        let large = url("a", #""label":"\#(String(repeating: "l", count: 250))""#)
        var refused = 0
        for _ in 0..<12 {
            if try codes(driver, driver.requestSubmit(large)) == [.busy(retryAfter: 60)] { refused += 1 }
        }
        #expect(refused > 0 && driver.core.counters.bytes(of: 1) <= 3000)
        #expect(try codes(driver, driver.requestSubmit(large, as: .two)) == [nil], "others have their own")
        driver.endAll()
        driver.ask(.remove(id))
        #expect(try codes(driver, driver.requestSubmit(url())) == [nil])
        driver.endAll()
        driver.expectQuiet()
    }

    /// The result of a source whose body stands in a file.
    private func inFile(_ size: Int) -> Outcome { .success(["status": 200, "size": JSON(size), "spilled": true]) }

    @Test func bodiesInFiles_countAsStored_untilTheirJobIsRemoved() throws {
        let driver = CoreDriver { $0.storedPerUser = 10_000 }
        let id = try driver.submit(url("a", #""then":[{"then":\#(step("b"))},{"then":{"throw":{"message":"m"}}}]"#))
        #expect(driver.running.last.map(\.roomForBody).map { (9_000...10_000).contains($0) } == true)
        try driver.end(id, inFile(4_000))
        #expect(driver.running.last.map(\.roomForBody).map { (5_000...6_000).contains($0) } == true)
        try driver.end(id, inFile(5_500))
        #expect(driver.stored(id)?.bodies == [0: 4_000, 1: 5_500] && driver.stored(id)?.state == .failed)
        #expect(driver.core.counters.bytes(of: 1) > 9_500)
        #expect(try codes(driver, driver.requestSubmit(url())) == [.busy(retryAfter: 60)])
        #expect(try codes(driver, driver.requestSubmit(url(), as: .two)) == [nil], "others have their own")
        driver.endAll()
        // The same after a restart. A body that is fetched again takes the place of the one before.
        driver.restart()
        #expect(driver.core.counters.bytes(of: 1) > 9_500)
        driver.ask(.retry(id, from: .start))
        try driver.end(id, inFile(3_000))
        try driver.end(id)
        #expect(driver.stored(id)?.bodies == [0: 3_000, 1: 5_500])
        driver.ask(.remove(id))
        #expect(driver.core.counters.bytes(of: 1) == 0)
        driver.expectQuiet()
    }

    /// Whoever writes such a value has no file.
    @Test func valueThatLooksLikeABody_countsAsItIs() throws {
        let driver = CoreDriver()
        let id = try driver.submit(#"{"source":{"type":"value","value":{"spilled":true,"size":1000000000000}}}"#)
        #expect(driver.stored(id)?.bodies == [:] && driver.core.counters.bytes(of: 1) < 10_000)
    }

    @Test func finishedJobs_areRemoved_whereTheirBodiesTakeUpTooMuch() throws {
        let driver = CoreDriver { $0.retentionBytes = 100_000 }
        for _ in 0..<20 {
            try driver.submit(url())
            driver.endAll { _ in inFile(30_000) }
        }
        driver.advance(10)
        #expect(driver.core.counters.finishedBytes <= 100_000)
        #expect(driver.store.all.map(\.id) == [18, 19, 20])
        driver.expectQuiet()
    }

    @Test func list_fails_whereItsChildrenWouldTakeUpTooMuch() throws {
        let driver = CoreDriver { $0.storedPerUser = 6000 }
        let filler = String(repeating: "x", count: 1500)
        let id = try driver.submit(
            #"{"source":{"type":"value","value":"\#(filler)"},"then":[{"then":{"source":{"type":"each","in":["{{input}}","{{input}}","{{input}}","{{input}}"],"job":\#(url())}}}]}"#
        )
        #expect(driver.stored(id)?.carried?.kind == .tooLarge)
        driver.expectQuiet()
    }

    // MARK: - Retention

    @Test func finishedJobs_areRemoved_onceTheyAreOld() throws {
        let driver = CoreDriver { $0.retentionAge = 600 }
        let old = try driver.submit(url())
        driver.endAll()
        driver.advance(300)
        let list = try driver.submit(#"{"source":{"type":"list","jobs":[\#(url())]}}"#)
        driver.endAll()
        driver.advance(290)
        #expect(driver.stored(old) != nil)
        driver.advance(75)
        #expect(driver.stored(old) == nil && driver.stored(list) != nil)
        driver.advance(400)
        #expect(driver.store.all.isEmpty && driver.removed.count == 3)
        driver.expectQuiet()
    }

    @Test func finishedJobs_areRemoved_whereThereAreTooMany() throws {
        let driver = CoreDriver { $0.retentionCount = 2 }
        let ids = try (0..<4).map { _ in
            let id = try driver.submit(url())
            driver.endAll()
            driver.advance(1)
            return id
        }
        driver.advance(61)
        #expect(driver.store.all.map(\.id) == Array(ids.suffix(2)))
        driver.expectQuiet()
    }

    @Test func finishedJobs_areRemoved_whereTheyTakeUpTooMuch() throws {
        let driver = CoreDriver { $0.retentionBytes = 100_000 }
        for _ in 0..<200 {
            try driver.submit(url())
            driver.endAll { _ in .success(.string(String(repeating: "x", count: 1000))) }
        }
        driver.advance(10)
        #expect(driver.core.counters.finishedBytes <= 100_000 && !driver.store.all.isEmpty)
        #expect(driver.store.all.map(\.id).max() == 200, "the oldest go first")
        driver.expectQuiet()
    }

    @Test(arguments: [true, false]) func jobsOfWhoHasFew_stay_whereAnotherHasTooMany(areTooMany: Bool) throws {
        let driver = CoreDriver {
            if areTooMany { $0.retentionCount = 10 } else { $0.retentionBytes = 100_000 }
        }
        let few = try driver.submit(url(), as: .one)
        driver.endAll { _ in .success(.string(String(repeating: "x", count: 1000))) }
        driver.advance(1)
        for _ in 0..<200 {
            try driver.submit(url(), as: .two)
            driver.endAll { _ in .success(.string(String(repeating: "x", count: 1000))) }
        }
        driver.advance(200)
        #expect(driver.stored(few) != nil, "the oldest of all, and of another than who has too many")
        #expect(areTooMany ? driver.store.all.count == 10 : driver.core.counters.finishedBytes <= 100_000)
        #expect(driver.store.all.count > 1)
        driver.expectQuiet()
    }

    @Test func finishedJobs_stay_whenTheClockLeapsForwardsAndBack() throws {
        let driver = CoreDriver { $0.retentionAge = 604_800 }
        let years = 10 * 31_557_600.0
        let id = try driver.submit(url())
        driver.endAll()
        driver.advance(120)
        for leap in [years, -years, -years, years] {
            driver.setWall(by: leap)
            if leap < 0 { try driver.submit(url("b")) }
            driver.endAll()
            driver.advance(3600)
            #expect(driver.stored(id) != nil)
        }
        // A daemon that starts while it is wrong has no better idea of it.
        driver.setWall(by: years)
        driver.stopAndWait(60)
        driver.advance(3600)
        #expect(driver.stored(id) != nil)
        driver.setWall(by: -years)
        driver.advance(580_000)
        #expect(driver.stored(id) != nil)
        driver.advance(30_000)
        #expect(driver.stored(id) == nil, "time passes all the same")
        driver.expectQuiet()
    }

    @Test func finishedJobs_areRemoved_whenTheLeapOfTheClockLasts() throws {
        let driver = CoreDriver { $0.retentionAge = 604_800 }
        let id = try driver.submit(url())
        driver.endAll()
        driver.advance(120)
        // As when a machine was suspended for a month.
        driver.setWall(by: 2_592_000)
        driver.advance(86_000)
        #expect(driver.stored(id) != nil)
        driver.advance(700)
        #expect(driver.stored(id) == nil)
        driver.expectQuiet()
    }

    @Test func unfinishedJobs_areNeverRemoved() throws {
        let driver = CoreDriver {
            $0.retentionAge = 1
            $0.retentionCount = 0
            $0.retentionBytes = 0
        }
        let running = try driver.submit(url("a", #""then":[{"then":\#(step("b"))}]"#))
        try driver.end(running)
        let scheduled = try driver.submit(url("a", #""delay":9999"#))
        driver.advance(500)
        #expect(driver.stored(running) != nil && driver.stored(scheduled) != nil)
        try driver.end(running)
        driver.advance(70)
        #expect(driver.store.all.map(\.id) == [scheduled])
    }

    /// A repeated save is the one that counts, and fails, though the one before it is stored.
    @Test func endOfAJob_isTold_whereItIsPurgedBeforeItsSaveIsAnswered() throws {
        let driver = CoreDriver { $0.retentionCount = 0 }
        let ids = try (0..<3).map { _ in try driver.submit(url("a")) }
        driver.ask(.watch(WatchScope(.jobs([ids[0]])), 1))
        let wait = driver.ask(.wait([ids[0]], timeout: nil))
        try driver.end(ids[1])
        let isSave: (StoreWrite) -> Bool = { if case .save = $0 { true } else { false } }
        driver.failsWrite = isSave
        try driver.end(ids[2])
        driver.failsWrite = { _ in false }
        driver.holdsWrites = true
        driver.advance(1)
        try driver.end(ids[0])
        driver.commitWrites()
        #expect(driver.stored(ids[0])?.state == .succeeded && driver.told.isEmpty)
        driver.failsWrite = isSave
        driver.holdsWrites = false
        driver.releaseWrites()
        #expect(driver.told.isEmpty && driver.answer(to: wait) == nil)
        driver.advance(60)
        #expect(driver.stored(ids[0]) == nil)
        #expect(driver.told.map(\.change.job) == [ids[0]] && driver.told.last?.change.isLast == true)
        guard case .job(let snapshot) = driver.answer(to: wait) else { return #expect(Bool(false)) }
        #expect(snapshot.job.state == .succeeded)
        driver.failsWrite = { _ in false }
        driver.advance(60)
        driver.expectQuiet()
    }

    @Test func purge_isTriedAgain_afterItFailed() throws {
        let driver = CoreDriver { $0.retentionCount = 0 }
        try driver.submit(url())
        driver.endAll()
        driver.failsWrite = { if case .purge = $0 { true } else { false } }
        driver.advance(200)
        #expect(driver.store.all.count == 1)
        driver.failsWrite = { _ in false }
        driver.advance(61)
        #expect(driver.store.all.isEmpty)
        driver.expectQuiet()
    }
}
