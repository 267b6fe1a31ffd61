import JobModel
import Testing

@testable import JobCore

/// Waiting for the end of jobs.
extension WatchTests {
    @Test func wait_isAnswered_onceAllAreOverAndStored() throws {
        let driver = CoreDriver()
        let ids = try (0..<2).map { _ in try driver.submit(url()) }
        let both = driver.ask(.wait([ids[1], ids[0]], timeout: nil))
        let one = driver.ask(.wait([ids[0]], timeout: nil))
        driver.holdsWrites = true
        try driver.end(ids[0])
        let late = driver.ask(.wait([ids[0]], timeout: nil))
        #expect([both, one, late].allSatisfy { driver.answer(to: $0) == nil })
        driver.holdsWrites = false
        driver.releaseWrites()
        #expect(driver.answer(to: one) != nil && driver.answer(to: late) != nil && driver.answer(to: both) == nil)
        try driver.end(ids[1])
        guard case .finished = driver.answer(to: both) else { return #expect(Bool(false)) }
        let shown = driver.answer(to: driver.ask(.jobs([ids[1], ids[0]])))?.jobs
        #expect(shown?.map(\.job.id) == [ids[1], ids[0]] && driver.answer(to: one)?.job?.job.id == ids[0])
        let after = driver.ask(.wait(ids, timeout: 0))
        #expect(driver.answer(to: after) != nil)
        driver.expectQuiet()
    }

    @Test func waits_runOutOfTime_inSeveralInputs_whereVeryManyDo() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url())
        let requests = (0..<600).map { _ in driver.ask(.wait([id], timeout: 5)) }
        driver.now.monotonic += 5_000_000_000
        driver.now.wall = driver.now.wall.adding(seconds: 5)
        let effects = driver.core.handle(.time, at: driver.now)
        #expect(effects.count { if case .answer = $0 { true } else { false } } == 256)
        #expect(effects.contains { if case .yield = $0 { true } else { false } })
        driver.feed(.resume)
        #expect(requests.count { driver.code($0) == .timeout } == 600 - 256)
    }

    @Test func wait_goesOn_whereAJobIsRetriedBeforeTheLastEnds() throws {
        let driver = CoreDriver()
        let ids = try (0..<2).map { _ in try driver.submit(url()) }
        let request = driver.ask(.wait(ids, timeout: nil))
        let timed = driver.ask(.wait(ids, timeout: 10))
        try driver.end(ids[0], .lasting)
        driver.ask(.retry(ids[0], from: .start))
        try driver.end(ids[1])
        #expect(driver.answer(to: request) == nil && driver.answer(to: timed) == nil)
        driver.advance(10)
        #expect(driver.answer(to: request) == nil && driver.code(timed) == .timeout)
        driver.endAll()
        guard case .finished = driver.answer(to: request) else { return #expect(Bool(false)) }
        #expect(ids.map { driver.state($0) } == [.succeeded, .succeeded])
        driver.expectQuiet()
    }

    @Test func jobsOfAWait_areShown_onlyWhileAllAreFinishedAndStored() throws {
        let driver = CoreDriver()
        let ids = try (0..<2).map { _ in try driver.submit(url()) }
        for id in ids { try driver.end(id, .lasting) }
        guard case .finished = driver.answer(to: driver.ask(.wait(ids, timeout: nil))) else {
            return #expect(Bool(false))
        }
        driver.ask(.retry(ids[0], from: .start))
        guard case .unfinished = driver.answer(to: driver.ask(.jobs(ids))) else { return #expect(Bool(false)) }
        driver.holdsWrites = true
        try driver.end(ids[0])
        guard case .unfinished = driver.answer(to: driver.ask(.jobs(ids))) else { return #expect(Bool(false)) }
        driver.holdsWrites = false
        driver.releaseWrites()
        #expect(driver.answer(to: driver.ask(.jobs(ids)))?.jobs?.map(\.job.state) == [.succeeded, .failed])
        driver.expectQuiet()
    }

    @Test func wait_isAnswered_whereAJobWasRememberedForTheSakeOfAnEarlierQuestion() throws {
        let driver = CoreDriver()
        let ids = try (0..<2).map { _ in try driver.submit(url()) }
        try driver.end(ids[0])
        let request = driver.ask(.wait(ids, timeout: nil))
        driver.holdsReads = true
        driver.ask(.job(ids[0]), as: .root)
        try driver.end(ids[1])
        driver.holdsReads = false
        // The earlier question is answered before that of the wait.
        driver.releaseReads()
        guard case .finished = driver.answer(to: request) else { return #expect(Bool(false)) }
        driver.expectQuiet()
    }

    @Test func wait_isGivenUp_orRunsOutOfTime_whileItsJobsAreRead() throws {
        for isGivenUp in [true, false] {
            let driver = CoreDriver()
            let ids = try (0..<2).map { _ in try driver.submit(url()) }
            let request = driver.ask(.wait(ids, timeout: 10))
            try driver.end(ids[0])
            driver.holdsReads = true
            try driver.end(ids[1])
            if isGivenUp { driver.feed(.abandon(request)) } else { driver.advance(10) }
            driver.holdsReads = false
            driver.releaseReads()
            #expect(isGivenUp ? driver.answer(to: request) == nil : driver.code(request) == .timeout)
            driver.expectQuiet()
        }
    }

    @Test func wait_runsOutOfTime_orIsGivenUp() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url())
        let timed = driver.ask(.wait([id], timeout: 10))
        let given = driver.ask(.wait([id], timeout: 20))
        driver.feed(.abandon(given))
        driver.advance(9.9)
        #expect(driver.answer(to: timed) == nil)
        driver.advance(0.1)
        #expect(driver.code(timed) == .timeout)
        driver.endAll()
        #expect(driver.answer(to: given) == nil)
        driver.expectQuiet()
    }

    @Test func wait_thatIsGivenUpBeforeItBegins_doesNotBegin() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a", #""delay":900"#))
        driver.holdsReads = true
        let request = driver.ask(.wait([id], timeout: nil))
        driver.feed(.abandon(request))
        driver.holdsReads = false
        driver.releaseReads()
        #expect(driver.core.inspection.waits == 0 && driver.core.beginningWaits.isEmpty)
        driver.ask(.cancel(id))
        #expect(driver.answer(to: request) == nil)
        driver.expectQuiet()
    }

    @Test func wait_ends_whereAJobIsRemovedMeanwhile() throws {
        let driver = CoreDriver()
        let first = try driver.submit(url())
        let second = try driver.submit(url())
        let request = driver.ask(.wait([first, second], timeout: nil))
        try driver.end(first)
        driver.ask(.remove(first))
        try driver.end(second)
        #expect(driver.code(request) == .notFound)
        driver.expectQuiet()
    }

    @Test func waits_endWithTheDaemon() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url())
        let request = driver.ask(.wait([id], timeout: nil))
        driver.feed(.stop)
        #expect(driver.code(request) == .shuttingDown)
        #expect(driver.code(driver.ask(.wait([id], timeout: nil))) == .shuttingDown)
        let submission = try driver.submitted(driver.requestSubmit(url()))
        guard case .failure(.stopping) = submission[0] else { return #expect(Bool(false)) }
    }
}
