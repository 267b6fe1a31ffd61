import JobModel
import Testing

@testable import JobCore

/// Jobs whose runs end with the daemon: repeated, interrupted, or run one at a time.
@Suite struct RestartTests {
    private func url(_ name: String = "a", method: String = "GET", retry: JSON? = nil, then: JSON = []) -> JSON {
        var job: JSON = [
            "source": ["type": "url", "url": .string("http://\(name)/"), "method": .string(method)], "then": then,
        ]
        if let retry, var members = job.object {
            members.append("retry", retry)
            job = .object(members)
        }
        return job
    }

    @Test(arguments: [Core.Start.crashed, .clean], ["POST", "PATCH", "post"])
    func lostPOST_isInterrupted_andCaughtByAFailLink(_ start: Core.Start, _ method: String) throws {
        let driver = try CoreDriver()
        let plain = try driver.submit(url(method: method))
        let link: JSON = ["fail": ["source": ["type": "url", "url": "http://c/"]], "on": ["interrupted"]]
        let caught = try driver.submit(url("b", method: method, then: [link]))
        try driver.restart(start)
        let row = try driver.row(plain)
        #expect(row.state == .failed && row.restarts == 0)
        #expect(row.carried?.error?.kind == .interrupted && row.carried?.error?.isRetryable == false)
        #expect(try driver.row(caught).link == 1 && driver.row(caught).state == .running)
    }

    @Test(arguments: [1, 0])
    func lostPOST_isRepeated_whereTheSpecAllowsRetries(_ max: Int) throws {
        let driver = try CoreDriver()
        let job = try driver.submit(url(method: "POST", retry: ["max": JSON(max)]))
        try driver.restart(.crashed)
        #expect(try driver.row(job).state == (max > 0 ? .running : .failed))
    }

    @Test func suspects_runOneAtATime_afterTheSecondCrash() throws {
        let driver = try CoreDriver()
        let jobs = try ["a", "b", "c"].map { try driver.submit(url($0)) }
        try driver.restart(.crashed)
        for job in jobs { #expect(try driver.row(job).state == .running) }
        try driver.restart(.crashed)
        #expect(try jobs.map { try driver.row($0).run != nil } == [true, false, false])
        let other = try driver.submit(url("d"))
        #expect(try driver.row(other).state == .running)
        try driver.succeed(jobs[0])
        #expect(try jobs.map { try driver.row($0).run != nil } == [false, true, false])
        // Only the one that ran alone is to blame.
        try driver.restart(.crashed)
        let blamed = try driver.row(jobs[1])
        #expect(blamed.state == .failed && blamed.carried?.error?.kind == .interrupted)
        #expect(try driver.row(jobs[2]).state == .running)
        #expect(try driver.row(other).state == .running)
    }

    @Test func gathering_isInterrupted_byTheThirdCrash() throws {
        let driver = try CoreDriver()
        let child: JSON = ["source": ["type": "url", "url": "http://a/"]]
        let job = try driver.submit(["source": ["type": "list", "jobs": [child]]])
        driver.expandsSteps = false
        try driver.succeed(job + 1)
        for _ in 0..<2 { try driver.restart(.crashed) }
        #expect(try driver.row(job).run != nil)
        try driver.restart(.crashed)
        #expect(try driver.row(job).carried?.error?.kind == .interrupted)
    }

    @Test func suspectsThatMustWait_takeNoStartOfTheirQueue() throws {
        var settings = CoreSettings()
        settings.queues = [QueueSettings(name: "default", concurrency: 9, startRate: StartRate(count: 5, seconds: 60))]
        let driver = try CoreDriver(settings)
        for name in ["a", "b", "c"] { _ = try driver.submit(url(name)) }
        for _ in 0..<2 {
            driver.advance(by: 61)
            try driver.restart(.crashed)
        }
        for name in ["d", "e", "f", "g"] { #expect(try driver.row(driver.submit(url(name))).state == .running) }
        #expect(try driver.row(driver.submit(url("h"))).state == .queued)
    }

    @Test func suspect_isCleared_afterAMinuteAtWork() throws {
        let driver = try CoreDriver()
        let jobs = try ["a", "b"].map { try driver.submit(url($0)) }
        for _ in 0..<2 { try driver.restart(.crashed) }
        driver.advance(by: 59)
        #expect(try driver.row(jobs[1]).run == nil)
        driver.advance(by: 1.1)
        #expect(try driver.row(jobs[0]).crashes == 0)
        #expect(try driver.row(jobs[1]).run != nil)
        try driver.restart(.crashed)
        #expect(try driver.row(jobs[0]).state == .running)
        #expect(try driver.row(jobs[1]).carried?.error?.kind == .interrupted)
    }

    @Test func suspects_areNone_afterACleanStop() throws {
        let driver = try CoreDriver()
        let jobs = try ["a", "b"].map { try driver.submit(url($0)) }
        for _ in 0..<2 { try driver.restart(.crashed) }
        try driver.restart(.clean)
        for job in jobs { #expect(try driver.row(job).crashes == 0 && driver.row(job).run != nil) }
    }

    @Test func waitingSuspect_canBeCancelled() throws {
        let driver = try CoreDriver()
        let jobs = try ["a", "b"].map { try driver.submit(url($0)) }
        for _ in 0..<2 { try driver.restart(.crashed) }
        #expect(try driver.row(jobs[1]).waiting == .suspect)
        driver.ask(.change(jobs[1], .cancel))
        #expect(try driver.row(jobs[1]).state == .cancelled)
    }

    @Test func finallyLink_isNoSuspect_afterItsJobsCrashes() throws {
        let driver = try CoreDriver()
        let link: JSON = ["finally": ["source": ["type": "url", "url": "http://c/"]]]
        let job = try driver.submit(url(then: [link]))
        try driver.restart(.crashed)
        driver.ask(.change(job, .cancel))
        try driver.restart(.crashed)
        #expect(try driver.row(job).link == 1 && driver.row(job).crashes == 0)
        try driver.restart(.crashed)
        #expect(try driver.row(job).state == .running)
    }

    @Test func failedAttempt_leavesASuspectOne() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(url(retry: ["max": 5, "initial": 1, "jitter": false]))
        for _ in 0..<2 { try driver.restart(.crashed) }
        try driver.fail(job, JobError(.network, "It broke.", retryable: true))
        #expect(try driver.row(job).state == .scheduled && driver.row(job).isSuspect)
        driver.advance(by: 70)
        try driver.restart(.crashed)
        #expect(try driver.row(job).carried?.error?.kind == .interrupted)
    }

    @Test func outcomeOfAPOST_isKept_whenItCameDuringAStop() throws {
        let driver = try CoreDriver()
        let jobs = try [driver.submit(url(method: "POST")), driver.submit(url("b"))]
        driver.round([.stop])
        for job in jobs { try driver.succeed(job, "7") }
        #expect(try jobs.map { try driver.row($0).state } == [.succeeded, .running])
    }
}
