import InMemoryStore
import JobModel
import JobCore
import Testing

@Suite struct ChainTests {
    private func url(_ then: JSON = []) -> JSON {
        ["source": ["type": "url", "url": "http://h/"], "then": then]
    }

    @Test func cancel_waitsForTheRun_thenRunsFinally() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(url([["finally": ["source": ["type": "url", "url": "http://h/done"]]]]))
        let run = try driver.run(of: job)
        #expect(driver.ask(.change(job, .cancel)) == nil)
        #expect(driver.cancelled == [run])
        try driver.succeed(job)
        #expect(try driver.row(job).link == 1)
        try driver.succeed(job)
        #expect(try driver.row(job).state == .cancelled)
        #expect(driver.answers.values.contains { if case .changed(job) = $0 { true } else { false } })
    }

    @Test func undoneRound_leavesNothing_andResetRestoresTheMemory() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(url())
        let before = driver.inspection
        driver.store.failNextCommit()
        let new = try driver.new(url())
        let end = driver.round([.request(driver.id(), .submit([new]), Caller(uid: 1, isAdmin: false))])
        guard case .undone = end else { return #expect(Bool(false), "The commit was to fail.") }
        try driver.reset(.resumed)
        #expect(driver.inspection == before)
        try driver.succeed(job)
        #expect(try driver.row(job).state == .succeeded)
    }

    @Test func timer_waitsWithoutASlot() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(["source": ["type": "timer", "seconds": 10]])
        #expect(try driver.row(job).waiting == .timer)
        #expect(driver.inspection.slots.isEmpty)
        try driver.restart(.crashed)
        driver.advance(by: 9)
        #expect(try driver.row(job).state == .running)
        driver.advance(by: 1.1)
        #expect(try driver.row(job).state == .succeeded)
    }

    @Test func deadline_endsAWaitingJob() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(["source": ["type": "timer", "seconds": 100], "deadline": 5])
        driver.advance(by: 6)
        #expect(try driver.row(job).state == .failed)
        #expect(try driver.row(job).carried?.error?.kind == .deadline)
    }
}
