import InMemoryStore
import JobModel
import JobCore
import Testing

@Suite struct ChainTests {
    private func url(_ then: JSON = []) -> JSON {
        ["source": ["type": "url", "url": "http://h/"], "then": then]
    }

    @Test func job_runsAndSucceeds() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(url())
        #expect(try driver.row(job).state == .running)
        try driver.succeed(job, "42")
        let row = try driver.row(job)
        #expect(row.state == .succeeded)
        #expect(row.carried == .success(.inline(Array("42".utf8))))
        #expect(row.outcomes.map(\.link) == [0])
        #expect(driver.inspection.slots.isEmpty)
    }

    @Test func failure_isCaughtByItsLink() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(
            url([
                ["then": ["source": ["type": "url", "url": "http://h/then"]]],
                ["fail": ["source": ["type": "url", "url": "http://h/fail"]], "on": ["network"]],
            ]))
        try driver.fail(job)
        #expect(try driver.row(job).link == 2)
        try driver.succeed(job)
        #expect(try driver.row(job).state == .succeeded)
        #expect(try driver.row(job).outcomes.map(\.link) == [0, 2])
    }

    @Test func retryable_failureWaits_andRunsAgain() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(url())
        try driver.fail(job, JobError(.network, "It broke.", retryable: true))
        #expect(try driver.row(job).state == .scheduled)
        #expect(driver.inspection.slots.isEmpty)
        driver.advance(by: 1)
        #expect(try driver.row(job).state == .running)
        #expect(try driver.row(job).attempt == 2)
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

    @Test func retryByHand_goesOnAtTheFailedLink() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(url([["then": ["source": ["type": "url", "url": "http://h/then"]]]]))
        try driver.succeed(job, "7")
        try driver.fail(job)
        #expect(try driver.row(job).state == .failed)
        driver.ask(.change(job, .retry(from: .failed)))
        let row = try driver.row(job)
        #expect(row.state == .running)
        #expect(row.link == 1)
        #expect(row.carried == .success(.inline(Array("7".utf8))))
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
