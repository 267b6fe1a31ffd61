import JobCore
import JobModel
import Testing

/// Holds, start rates, and room that finished jobs make.
@Suite struct ChangeTests {
    private let url: JSON = ["source": ["type": "url", "url": "http://h/"], "retry": ["max": 0]]

    @Test func starts_keepToTheirRate_alsoInSlotsThatAreKept() throws {
        var settings = CoreSettings()
        settings.queues = [
            QueueSettings(name: "default", concurrency: 10, startRate: StartRate(count: 2, seconds: 10))
        ]
        let driver = try CoreDriver(settings)
        let step: JSON = ["source": ["type": "url", "url": "http://h/"]]
        let chain: JSON = ["source": ["type": "url", "url": "http://h/"], "then": [["then": step]]]
        let first = try driver.submit(chain)
        driver.advance(by: 4)
        for _ in 0..<3 { _ = try driver.submit(url) }
        #expect(driver.live.count == 2)
        // The next link would be a third start.
        try driver.succeed(first)
        #expect(driver.live.count == 1)
        #expect(try driver.row(first).state == .queued)
        driver.advance(by: 5.9)
        #expect(driver.live.count == 1)
        #expect(driver.core.nextTick.steady == driver.now.steady + 100)
        driver.advance(by: 0.1)
        #expect(driver.live.values.contains { $0.job == first } && driver.live.count == 2)
        driver.advance(by: 4)
        #expect(driver.live.count == 3)
        driver.send(.configure(CoreSettings()))
        #expect(driver.live.count == 4)
    }

    @Test func queue_takesNoJobs_onceItIsNotConfigured_unlessAnAdministratorMadeIt() throws {
        func status(_ driver: CoreDriver, _ name: String, _ change: QueueChange) throws -> QueueStatus {
            guard case .queue(let status)? = driver.ask(.setQueue(name, change), isAdmin: true) else {
                throw CoreDriver.Failure(message: "The queue was not set.")
            }
            return status
        }
        var resuming = QueueChange()
        resuming.isSuspended = .some(false)
        var settings = CoreSettings()
        settings.queues += [QueueSettings(name: "idle"), QueueSettings(name: "used")]
        let driver = try CoreDriver(settings)
        for name in ["idle", "used"] {
            #expect(try status(driver, name, .suspending).settings.isSuspended)
            #expect(try !status(driver, name, resuming).settings.isSuspended)
        }
        #expect(try status(driver, "own", .suspending).takesJobs)
        for _ in 0..<3 {
            _ = try driver.submit(["source": ["type": "url", "url": "http://h/"], "queue": "used"])
        }
        _ = try status(driver, "used", .suspending)
        driver.send(.configure(CoreSettings()))
        try driver.restart(.clean)
        for name in ["idle", "used"] {
            #expect(!driver.core.status(of: name).takesJobs)
            #expect(throws: ProtocolError.self) {
                try driver.submit(["source": ["type": "value", "value": 1], "queue": .string(name)])
            }
        }
        #expect(driver.live.isEmpty)
        let used = try status(driver, "used", resuming)
        #expect(!used.takesJobs && used.settings.concurrency == 1)
        #expect(driver.live.count == 1)
        // It is there until its concurrency is given back.
        #expect(driver.core.status(of: "own").takesJobs)
        resuming.concurrency = .some(nil)
        #expect(try !status(driver, "own", resuming).takesJobs)
    }

    @Test func queue_isWarnedOf_ifItHasUnfinishedJobsAndIsNotConfigured() throws {
        var settings = CoreSettings()
        settings.queues += [QueueSettings(name: "done"), QueueSettings(name: "used")]
        let driver = try CoreDriver(settings)
        let done = try driver.submit(["source": ["type": "url", "url": "http://h/"], "queue": "done"])
        try driver.succeed(done)
        _ = try driver.submit(["source": ["type": "url", "url": "http://h/"], "queue": "used"])
        driver.send(.configure(CoreSettings()))
        let warned = driver.effects.compactMap { effect -> String? in
            guard case .log(let log) = effect, log.level == .warning, case .message(_, _, let queue) = log.content
            else {
                return nil
            }
            return queue
        }
        #expect(warned == ["used"])
        // One that is retried runs nevertheless.
        driver.ask(.change(done, .retry(from: .start)))
        #expect(try driver.row(done).state == .running)
    }

    @Test func queue_takesNoJobs_underAnotherSpellingOfItsName() throws {
        var settings = CoreSettings()
        settings.queues = [QueueSettings(name: "\u{e9}")]
        let driver = try CoreDriver(settings)
        let job: JSON = ["source": ["type": "value", "value": 1], "queue": "e\u{301}"]
        #expect(throws: ProtocolError.self) { try driver.submit(job) }
        guard case .queue(let status)? = driver.ask(.setQueue("e\u{301}", .suspending), isAdmin: true) else {
            throw CoreDriver.Failure(message: "The queue was not set.")
        }
        #expect(status.settings.name.utf8.count == 2 && status.settings.isSuspended)
    }

    @Test(arguments: [JobAction.retry(from: .start), .remove])
    func end_isTold_ofARunningChild_thatIsRemovedWithItsList(_ action: JobAction) throws {
        let driver = try CoreDriver()
        let list = try driver.submit(["source": ["type": "list", "jobs": [url]]])
        let child = try #require(driver.live.values.first?.job)
        driver.ask(.watch(WatchScope(.jobs([child])), 5))
        driver.ask(.change(list, .cancel))
        driver.round([.request(driver.id(), .change(list, action), Caller(uid: 1, isAdmin: false))])
        driver.settle()
        #expect(!driver.exists(child))
        #expect(driver.changes.filter { $0.row.id == child }.map(\.row.state) == [.cancelled])
        #expect(driver.core.subscriptions.count == 0)
    }

    @Test func heldJob_startsWhenReleased_whateverItWaitedFor() throws {
        let driver = try CoreDriver()
        let delayed = try driver.submit(["source": ["type": "url", "url": "http://h/"], "delay": 100])
        let retried = try driver.submit(["source": ["type": "url", "url": "http://h/"], "retry": ["initial": 100]])
        try driver.fail(retried, JobError(.network, "It broke.", retryable: true))
        driver.ask(.changeAll([delayed, retried], .hold, onlyCounts: false))
        driver.advance(by: 1000)
        #expect(driver.live.isEmpty)
        driver.ask(.changeAll([delayed, retried], .release, onlyCounts: false))
        #expect(Set(driver.live.values.map(\.job)) == [delayed, retried])
        #expect(try driver.row(retried).attempt == 2)
    }

    @Test func manyJobs_areRefused_forWhatLiesInNone() throws {
        var settings = CoreSettings()
        settings.limits.queuedJobsPerUser = 2
        let driver = try CoreDriver(settings)
        func failure(_ jobs: [JobID], _ action: JobAction) -> ProtocolError? {
            guard case .failed(let error)? = driver.ask(.changeAll(jobs, action, onlyCounts: false)) else { return nil }
            return error
        }
        let done = try (0..<3).map { _ in try driver.submit(["source": ["type": "value", "value": 1]]) }
        let held = try driver.submit(["source": ["type": "url", "url": "http://h/"], "held": true])
        var changes = JobSettings()
        changes.queue = "nope"
        #expect(failure([held, 99], .set(changes))?.data["pointer"] == "/queue")
        // Retried jobs wait in it.
        driver.ask(.setQueue("default", .suspending), isAdmin: true)
        #expect(failure(done, .retry(from: .start))?.code == ProtocolError.Code.busy.rawValue)
        #expect(try driver.row(done[0]).state == .queued && driver.row(done[1]).state == .succeeded)
        // A job without a download does not end the call.
        changes = JobSettings()
        changes.rate = 5
        guard
            case .counted(done: 0, skipped: 2)? = driver.ask(.changeAll([held, 99], .set(changes), onlyCounts: false))
        else { return #expect(Bool(false), "It got another answer.") }
    }

    @Test func key_isSaidToBeFree_afterTheRightEvent() throws {
        let driver = try CoreDriver()
        func message(_ job: JobID) -> String? {
            guard case .failed(let error)? = driver.ask(.change(job, .retry(from: .start))) else { return nil }
            return error.message
        }
        let spec: JSON = ["source": ["type": "url", "url": "http://h/"], "key": "k", "keyUntil": "finished"]
        let first = try driver.submit(spec)
        try driver.succeed(first)
        let second = try driver.submit(spec)
        #expect(message(first)?.contains("wait for its end") == true)
        try driver.succeed(second)
        let third = try driver.submit(["source": ["type": "value", "value": 1], "key": "k"])
        #expect(try driver.row(third).state == .succeeded)
        #expect(message(first)?.contains("remove that job") == true)
    }

    @Test func deadline_appliesToThePresentAttempt_whenItChanges() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(["source": ["type": "url", "url": "http://h/"], "deadline": 10, "timeout": 100])
        let run = try driver.run(of: job)
        // The source ends for no deadline by itself, as it may change.
        #expect(driver.orders[run]?.job.step?.timeout == 100)
        func set(_ seconds: Double) {
            var settings = JobSettings()
            settings.deadline = .some(seconds)
            driver.ask(.change(job, .set(settings)))
        }
        set(50)
        driver.advance(by: 20)
        #expect(driver.cancelled.isEmpty)
        set(5)
        driver.advance(by: 5)
        #expect(driver.cancelled == [run])
        try driver.fail(job, JobRow.Stop.cancelled.error)
        #expect(try driver.row(job).carried?.error?.kind == .deadline)
    }

    @Test func deadline_isNotSet_forAJobThatIsBeingStopped() throws {
        let driver = try CoreDriver()
        let last: JSON = ["finally": ["source": ["type": "url", "url": "http://h/"]]]
        let job = try driver.submit(["source": ["type": "timer", "seconds": 1000], "then": [last]])
        driver.ask(.change(job, .cancel))
        var settings = JobSettings()
        settings.deadline = .some(5)
        driver.ask(.change(job, .set(settings)))
        driver.advance(by: 10)
        #expect(!driver.core.wantsTick)
        try driver.succeed(job)
        #expect(try driver.row(job).state == .cancelled)
    }

    @Test func oldestFinishedJobs_makeRoom_forResultsAndSubmissions() throws {
        var settings = CoreSettings()
        settings.storedPerUser = 6000
        let driver = try CoreDriver(settings)
        let text = "\"" + String(repeating: "x", count: 1000) + "\""
        let others = try driver.submit(url, as: 2)
        try driver.succeed(others, text)
        var jobs: [JobID] = []
        for _ in 0..<10 {
            jobs.append(try driver.submit(url))
            try driver.succeed(jobs[jobs.count - 1], text)
        }
        let kept = jobs.filter(driver.exists)
        #expect(kept == jobs.suffix(kept.count) && (3...5).contains(kept.count), "\(kept)")
        #expect(try driver.row(jobs[9]).state == .succeeded)
        #expect(driver.exists(others))
        // What frees too little removes nothing.
        let huge = try driver.submit(url)
        let before = jobs.filter(driver.exists)
        try driver.succeed(huge, "\"" + String(repeating: "x", count: 7000) + "\"")
        #expect(try driver.row(huge).carried?.error?.kind == .tooLarge)
        #expect(jobs.filter(driver.exists) == before)
    }

    @Test func result_isKept_whenManyJobsMustMakeRoom() throws {
        var settings = CoreSettings()
        settings.storedPerUser = 200_000
        settings.limits.body = 100_000
        let driver = try CoreDriver(settings)
        var jobs: [JobID] = []
        while jobs.count < 400 {
            jobs.append(try driver.submit(["source": ["type": "value", "value": JSON(jobs.count)]]))
        }
        let last = try driver.submit(url)
        let kept = jobs.filter(driver.exists)
        // More jobs than one input removes.
        try driver.succeed(last, "\"" + String(repeating: "x", count: 90_000) + "\"")
        #expect(try driver.row(last).state == .succeeded)
        #expect(kept.filter(driver.exists).count < kept.count - 64)
        let stored = driver.core.status.counts.values.reduce(0) { $0 + $1.bytes }
        #expect((100_000...200_000).contains(stored), "\(stored)")
        #expect(!driver.core.wantsTick)
    }

    @Test func submission_keepsTheJob_thatItWaitsFor() throws {
        var settings = CoreSettings()
        settings.storedPerUser = 2500
        let driver = try CoreDriver(settings)
        let target = try driver.submit(url)
        try driver.succeed(target, "\"" + String(repeating: "x", count: 1000) + "\"")
        let spec: JSON = [
            "source": ["type": "job", "job": JSON(Int(target))], "label": .string(String(repeating: "l", count: 200)),
            "tags": .array((0..<8).map { .string("\($0)" + String(repeating: "t", count: 150)) }),
        ]
        let refusal = #expect(throws: ProtocolError.self) { try driver.submit(spec) }
        #expect(refusal?.message.contains("no room") == true && driver.exists(target))
    }

    @Test func children_haveTheirParentsDeadline_alsoOnceItIsExtended() throws {
        for deadline in [60, nil] as [Double?] {
            let driver = try CoreDriver()
            let inner: JSON = ["source": ["type": "list", "jobs": [url, url]]]
            let own = url.with(["deadline": 8])
            let list = try driver.submit(["source": ["type": "list", "jobs": [url, inner, own]], "deadline": 5])
            var settings = JobSettings()
            settings.deadline = .some(deadline)
            driver.ask(.change(list, .set(settings)))
            driver.advance(by: 5)
            #expect(driver.cancelled.isEmpty)
            driver.advance(by: 3)
            #expect(driver.cancelled.count == 1, "the child with a deadline of its own")
            #expect(try driver.row(list).state == .running && driver.live.count == 4)
            if deadline == nil { continue }
            driver.advance(by: 52)
            #expect(driver.cancelled.count == 4)
        }
    }

    @Test func children_areStoppedWithTheirParent_whateverTheirDeadlines() throws {
        let driver = try CoreDriver()
        let inner: JSON = ["source": ["type": "list", "jobs": [url.with(["deadline": 8])]], "deadline": 6]
        let jobs: JSON = [inner, url.with(["deadline": 8])]
        let list = try driver.submit(["source": ["type": "list", "jobs": jobs], "deadline": 5])
        let child = try #require(driver.live.values.map(\.job).max())
        var settings = JobSettings()
        settings.deadline = .some(20)
        driver.ask(.change(child, .set(settings)))
        #expect(driver.live.count == 2)
        driver.advance(by: 5)
        #expect(driver.cancelled.count == 2)
        for job in driver.live.values.map(\.job) { try driver.fail(job, JobRow.Stop.cancelled.error) }
        #expect(try driver.row(list).carried?.error?.kind == .deadline)
        for job in list...child { #expect(try driver.row(job).state.isTerminal) }
    }

    @Test func watchOfATag_forgetsJobs_thatLoseIt() throws {
        let driver = try CoreDriver()
        func watch(_ subject: WatchScope.Subject, _ id: SubscriptionID) {
            driver.ask(.watch(WatchScope(subject), id))
        }
        watch(.tag("a"), 1)
        watch(.tag("b"), 2)
        watch(.all, 3)
        let job = try driver.submit(url.with(["tags": ["a", "b"]]))
        var settings = JobSettings()
        settings.tags = ["b", "c"]
        driver.ask(.change(job, .set(settings)))
        let gone = driver.effects.compactMap { effect -> [SubscriptionID]? in
            if case .gone(job, let ids) = effect { ids } else { nil }
        }
        #expect(gone == [[1]])
    }
}

extension QueueChange {
    fileprivate static var suspending: QueueChange {
        var change = QueueChange()
        change.isSuspended = .some(true)
        return change
    }
}
