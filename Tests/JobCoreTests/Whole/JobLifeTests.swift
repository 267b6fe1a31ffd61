import JobModel
import Testing

@testable import JobCore

/// The spec of a job that asks `host`.
func url(_ host: String = "a", _ members: String = "") -> String {
    #"{"source":{"type":"url","url":"http://\#(host)/x"}\#(members.isEmpty ? "" : ",")\#(members)}"#
}

/// The spec of a job that runs a program.
func program(_ members: String = "") -> String {
    #"{"source":{"type":"program","program":"p"}\#(members.isEmpty ? "" : ",")\#(members)}"#
}

/// A link's step that asks `host`.
func step(_ host: String = "a", _ members: String = "") -> String { url(host, members) }

/// From a submission to the end: running, chains, retries, timers.
@Suite struct JobLifeTests {
    private static let retry = #""retry":{"max":2,"initial":10,"factor":2,"jitter":false}"#

    @Test func job_runsToItsEnd() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url())
        #expect(driver.state(id) == .running && driver.stored(id)?.state == .queued)
        let run = try driver.run(of: id)
        #expect(run.link == 0 && run.attempt == 1 && run.owner == 1 && !run.mayResume && run.timeout == nil)
        #expect(run.mayRetry, "4 times by default")
        #expect(driver.store.marks == [id] && driver.core.inspection.slots == 1)
        #expect(driver.core.inspectHosts().map(\.host) == ["a"] && driver.core.inspectSlots().map(\.used) == [1])
        driver.advance(2)
        try driver.end(id, .success(["status": 200]))
        let job = try #require(driver.stored(id))
        #expect(job.state == .succeeded && job.carried == .success(["status": 200]) && job.outcomes.count == 1)
        #expect(job.finishedAt == driver.now.wall)
        driver.expectQuiet()
    }

    @Test func submission_isAnswered_onceItIsStored() throws {
        let driver = CoreDriver()
        driver.holdsWrites = true
        let request = try driver.requestSubmit(url(), url("b"))
        #expect(driver.answer(to: request) == nil && driver.started.isEmpty)
        #expect(driver.core.inspection.submitting == 2)
        driver.releaseWrites()
        let submitted = try driver.submitted(request).map { try $0.get() }
        #expect(submitted.map(\.job) == [1, 2])
        #expect(submitted.allSatisfy { $0.state == .queued && $0.isCreated })
        #expect(driver.atWork == [1, 2])
    }

    @Test func submission_isRefused_whereItsQueueIsUnknown() throws {
        let driver = CoreDriver()
        let request = try driver.requestSubmit(url("a", #""queue":"none""#), url())
        let results = try driver.submitted(request)
        guard case .failure(let error) = results[0], case .success = results[1] else {
            Issue.record("\(results)")
            return
        }
        #expect(error.code == .invalid(JSONPointer(["queue"])))
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func job_waits_untilItsTime() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a", #""delay":60"#))
        #expect(driver.state(id) == .scheduled)
        driver.advance(59.9)
        #expect(driver.started.isEmpty)
        driver.advance(0.1)
        #expect(driver.atWork == [id])
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func jobs_areAllStarted_whereManyAreDueAtOnce() throws {
        let driver = CoreDriver { $0.queues = [QueueSettings(name: "default", concurrency: 5000)] }
        let request = driver.ask(
            .submit(try (0..<1200).map { try driver.new(url("h\($0)", #""delay":60"#)) }))
        #expect(try driver.submitted(request).count == 1200)
        driver.advance(61)
        #expect(driver.started.count == 1200)
        driver.endAll()
        driver.expectQuiet()
    }

    // MARK: - Retries

    @Test func source_isTriedAgain_afterItsPauses_andNoMoreOftenThanItMay() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a", Self.retry))
        try driver.end(id, .passing)
        #expect(driver.state(id) == .scheduled && driver.core.inspection.slots == 0)
        driver.advance(9.9)
        #expect(driver.started.count == 1)
        driver.advance(0.1)
        #expect(try driver.run(of: id).attempt == 2 && driver.run(of: id).mayResume)
        // The third attempt is the last.
        #expect(try driver.run(of: id).mayRetry)
        try driver.end(id, .passing)
        driver.advance(20)
        #expect(try driver.run(of: id).attempt == 3)
        try driver.end(id, .passing)
        let job = try #require(driver.stored(id))
        #expect(job.state == .failed && job.carried?.kind == .network && job.outcomes.map(\.attempts) == [3])
        driver.expectQuiet()
    }

    /// Or it gets a turn, and waits in memory for the host that it does ask, however many do.
    @Test func job_waitsForTheHost_thatItsNextAttemptAsks() throws {
        let driver = CoreDriver { $0.perHost = 1 }
        let link = #"{"then":\#(step("h{{job/attempt}}", Self.retry))}"#
        let id = try driver.submit(url("a", #""then":[\#(link),{"finally":\#(step("f{{job/attempt}}"))}]"#))
        let other = try driver.submit(url("h2", #""then":[\#(link)]"#))
        try driver.end(id)
        #expect(try driver.run(of: id).attempt == 1 && driver.run(of: id).parameters.host == "h1")
        // Before a retry.
        try driver.end(id, .passing)
        #expect(driver.stored(id)?.host == "h2")
        driver.advance(10)
        #expect(driver.state(id) == .queued && driver.core.inspection.residentJobs == 1)
        try driver.end(other, .lasting)
        #expect(try driver.run(of: id).attempt == 2 && driver.run(of: id).parameters.host == "h2")
        // After a crash, which uses no attempt up.
        driver.crash()
        #expect(driver.stored(id)?.host == "h2" && driver.stored(id)?.crashes == 1)
        #expect(try driver.run(of: id).attempt == 2 && driver.run(of: id).parameters.host == "h2")
        // Before a link that a stop leaves to run.
        try driver.end(id, .passing)
        let third = try driver.submit(url("f1"))
        driver.ask(.cancel(id))
        #expect(driver.stored(id)?.host == "f1" && driver.atWork == [third])
        #expect(driver.core.inspection.residentJobs == 1)
        driver.endAll()
        #expect(driver.stored(id)?.state == .cancelled)
        driver.expectQuiet()
    }

    @Test func source_isNotTriedAgain_whereItsFailureStays() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a", Self.retry))
        try driver.end(id, .lasting)
        #expect(driver.stored(id)?.state == .failed)
        driver.expectQuiet()
    }

    @Test func host_isLeftAlone_forAsLongAsAnyoneWasTold() throws {
        let driver = CoreDriver()
        let ids = try (0..<3).map { _ in try driver.submit(url("a", Self.retry)) }
        let other = try driver.submit(url("b"))
        for (id, pause) in zip(ids, [30.0, 100, 20]) {
            var error = JobError(.http, "Busy.", retryable: true)
            error.retryAfter = pause
            try driver.end(id, .failure(error))
        }
        let late = try driver.submit(url("a"))
        #expect(driver.atWork == [other])
        driver.advance(99)
        #expect(driver.atWork == [other], "each asked for a time of its own")
        driver.advance(2)
        #expect(driver.atWork == [other, ids[0], ids[1], ids[2], late])
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func host_isLeftAlone_whereARedirectLedToIt() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a", Self.retry))
        var error = JobError(.http, "Busy.", retryable: true)
        error.retryAfter = 3600
        error.retryAfterHost = "b"
        try driver.end(id, .failure(error))
        let other = try driver.submit(url("a"))
        _ = try driver.submit(url("b"))
        #expect(driver.atWork == [other], "a redirected to b, and b asked for it")
        #expect(driver.stored(id)?.state == .scheduled)
        error.retryAfterHost = "a"
        try driver.end(other, .failure(error))
        let late = try driver.submit(url("a"))
        #expect(!driver.atWork.contains(late))
    }

    @Test func host_isLeftAlone_noLongerThanMayBe() throws {
        let driver = CoreDriver { $0.longestBackOff = 60 }
        let id = try driver.submit(url("a", Self.retry))
        var error = JobError(.http, "Busy.", retryable: true)
        error.retryAfter = 1e9
        try driver.end(id, .failure(error))
        let late = try driver.submit(url("a"))
        driver.advance(59)
        #expect(driver.atWork.isEmpty)
        driver.advance(2)
        // Its own retry waits as long as it may, the host no longer than that.
        #expect(driver.atWork.contains(late))
    }

    // MARK: - Chains

    /// The links that run (by the letter of their host), for what the source and the links end with.
    @Test(
        arguments: [
            (#"{"then":\#(step("b"))}"#, [:], "ab", JobState.succeeded),
            (#"{"then":\#(step("b"))},{"fail":\#(step("c"))}"#, ["a": true], "ac", .succeeded),
            (#"{"then":\#(step("b"))},{"fail":\#(step("c"))}"#, [:], "ab", .succeeded),
            (#"{"then":\#(step("b")),"fail":\#(step("c"))}"#, ["a": true, "c": true], "ac", .failed),
            (#"{"both":\#(step("b"))},{"then":\#(step("c"))}"#, ["a": true], "abc", .succeeded),
            (#"{"finally":\#(step("b"))},{"then":\#(step("c"))}"#, ["b": true], "abc", .succeeded),
            (#"{"finally":\#(step("b"))},{"fail":\#(step("c"))}"#, ["a": true, "c": true], "abc", .failed),
            (#"{"then":{"return":"{{input}}"}},{"finally":\#(step("b"))}"#, [:], "ab", .succeeded),
            (#"{"then":{"throw":{"message":"no"}}},{"fail":\#(step("b"))}"#, [:], "ab", .succeeded),
            (#"{"fail":\#(step("b")),"on":["timeout"]},{"finally":\#(step("c"))}"#, ["a": true], "ac", .failed),
        ] as [(String, [String: Bool], String, JobState)])
    func chain_runsItsLinksInOrder(_ links: String, _ fails: [String: Bool], _ order: String, _ end: JobState) throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a", #""then":[\#(links)]"#))
        func host(_ run: SourceRun) -> String {
            guard case .url(let request) = run.parameters else { return "?" }
            return String(request.url.dropFirst(7).prefix(1))
        }
        driver.endAll { fails[host($0)] == true ? .lasting : .success("done") }
        #expect(driver.started.map(host).joined() == order)
        #expect(driver.stored(id)?.state == end)
        driver.expectQuiet()
    }

    @Test func link_starts_onceTheOneBeforeIsStored() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a", #""then":[{"then":\#(step("b"))}]"#))
        driver.holdsWrites = true
        try driver.end(id)
        #expect(driver.started.count == 1 && driver.core.inspection.hostConnections == 0)
        driver.releaseWrites()
        #expect(driver.started.map(\.link) == [0, 1])
        #expect(driver.stored(id)?.state == .running)
    }

    @Test func link_waitsForItsHost_withoutASlot() throws {
        let driver = CoreDriver {
            $0.perHost = 1
            $0.queues = [QueueSettings(name: "default", concurrency: 2)]
        }
        let first = try driver.submit(url("b"))
        let second = try driver.submit(url("a", #""then":[{"then":\#(step("b"))}]"#))
        try driver.end(second)
        #expect(driver.core.inspection.slots == 1 && driver.state(second) == .running)
        let third = try driver.submit(url("c"))
        #expect(driver.atWork == [first, third])
        try driver.end(first)
        #expect(driver.atWork == [third, second])
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func expressions_areFilledIn() throws {
        let driver = CoreDriver()
        let id = try driver.submit(
            #"{"source":{"type":"value","value":{"host":"b"}},"then":[{"then":{"source":{"type":"url","url":"http://{{input/host}}/{{job/id}}"}}}]}"#
        )
        guard case .url(let request) = try driver.run(of: id).parameters else { return }
        #expect(request.url == "http://b/\(id)" && driver.core.inspectHosts().map(\.host) == ["b"])
        driver.endAll()
        driver.expectQuiet()
    }

    @Test(arguments: [
        (#"{"type":"url","url":"http://{{input/body/none}}/"}"#, JobError.Kind.template),
        (#"{"type":"url","url":"http://{{input/body/host}}/"}"#, .policy),
    ])
    func link_fails_whereWhatIsFilledInIsWrong(_ source: String, _ kind: JobError.Kind) throws {
        let driver = CoreDriver()
        let id = try driver.submit(
            #"{"source":{"type":"url","url":"http://a/"},"then":[{"then":{"source":\#(source)}}]}"#)
        try driver.end(id, .success(["body": ["host": "denied"]]))
        #expect(driver.stored(id)?.carried?.kind == kind && driver.stored(id)?.link == 1)
        driver.expectQuiet()
    }

    // MARK: - Timers

    private func timer(_ seconds: Double, _ members: String = "") -> String {
        #"{"source":{"type":"timer","seconds":\#(seconds)}\#(members.isEmpty ? "" : ",")\#(members)}"#
    }

    @Test func timer_endsAfterItsTime_withoutASlot() throws {
        let driver = CoreDriver { $0.queues = [QueueSettings(name: "default", concurrency: 1)] }
        let timer = try driver.submit(timer(100))
        let other = try driver.submit(url())
        #expect(driver.state(timer) == .running && driver.atWork == [other])
        driver.advance(99)
        #expect(driver.state(timer) == .running)
        driver.advance(1)
        #expect(driver.stored(timer)?.carried == .success(.null))
        driver.endAll()
        driver.expectQuiet()
    }

    @Test(arguments: [true, false])
    func timer_keepsItsEnd_overARestart(_ isCrash: Bool) throws {
        let driver = CoreDriver()
        let id = try driver.submit(timer(100))
        driver.advance(40)
        if isCrash { driver.crash() } else { driver.restart() }
        driver.advance(59)
        #expect(driver.state(id) == .running)
        driver.advance(1)
        #expect(driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test(arguments: [-86_400.0, 86_400])
    func timer_isNotMoved_whereTheTimeOfDayIsSet(_ seconds: Double) throws {
        let driver = CoreDriver()
        let id = try driver.submit(timer(100))
        let bounded = try driver.submit(timer(100, #""timeout":50,"retry":{"max":0}"#))
        driver.setWall(by: seconds)
        driver.advance(49)
        #expect(driver.state(id) == .running && driver.state(bounded) == .running)
        driver.advance(1)
        #expect(driver.stored(bounded)?.carried?.kind == .timeout)
        driver.advance(50)
        #expect(driver.stored(id)?.state == .succeeded)
    }

    @Test func timer_endsWithItsDaemonAway() throws {
        let driver = CoreDriver()
        let id = try driver.submit(timer(100))
        driver.advance(40)
        driver.stopAndWait(1000)
        #expect(driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test func timer_takesTooLong_whereItsTimeoutIsShorter() throws {
        let driver = CoreDriver()
        let id = try driver.submit(timer(100, #""timeout":10,"retry":{"max":1,"initial":5,"jitter":false}"#))
        driver.advance(10)
        #expect(driver.state(id) == .scheduled)
        driver.advance(5)
        #expect(driver.state(id) == .running)
        driver.advance(10)
        let job = try #require(driver.stored(id))
        #expect(job.state == .failed && job.carried?.kind == .timeout && job.outcomes.first?.attempts == 2)
        driver.expectQuiet()
    }

    @Test func timer_ofNoTime_endsAtOnce() throws {
        let driver = CoreDriver()
        let id = try driver.submit(timer(0))
        driver.advance(0)
        #expect(driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    // MARK: - Keys

    @Test func key_joinsTheSameSpec_andRefusesAnother() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a", #""key":"k""#))
        let again = try driver.submitted(driver.requestSubmit(url("a", #""key":"k""#)))[0].get()
        #expect(again == SubmittedJob(job: id, state: .running, isCreated: false))
        guard case .failure(let error) = try driver.submitted(driver.requestSubmit(url("b", #""key":"k""#)))[0] else {
            Issue.record("It was accepted.")
            return
        }
        #expect(error.code == .keyConflict(id))
        let other = try driver.submit(url("b", #""key":"k""#), as: .two)
        #expect(other != id)
        driver.endAll()
        driver.ask(.remove(id))
        #expect(try driver.submit(url("b", #""key":"k""#)) != id, "it is free again")
        driver.endAll()
        driver.expectQuiet()
    }
}
