import JobModel
import JobCore
import Testing

/// What counts as stored, and what is purged or refused above the limits.
@Suite struct QuotaTests {
    private let spec: JSON = [
        "source": ["type": "url", "url": "http://h/"], "retry": ["max": 0],
        "then": [["then": ["source": ["type": "url", "url": "http://h/next"]]]],
    ]

    private func stored(_ driver: CoreDriver, by owner: UInt32 = 1) -> Int64 {
        driver.core.status.counts.filter { $0.key.owner == owner }.values.reduce(0) { $0 + $1.bytes }
    }

    @Test func whatCameIntoAFailedLink_counts() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(spec)
        let before = stored(driver)
        let value = #""\#(String(repeating: "x", count: 10_000))""#
        try driver.succeed(job, value)
        try driver.fail(job)
        #expect(try driver.row(job).failedLink?.incoming != nil)
        #expect(stored(driver) >= before + 10_000)
    }

    @Test func settings_count_whenTheyAreSetLater() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(["source": ["type": "url", "url": "http://h/"], "delay": 100])
        let before = stored(driver)
        var settings = JobSettings()
        settings.label = .some(String(repeating: "l", count: 200))
        settings.tags = ["one", "two"]
        driver.ask(.change(job, .set(settings)))
        #expect(stored(driver) == before + 206)
        settings.label = .some(nil)
        settings.tags = []
        driver.ask(.change(job, .set(settings)))
        #expect(stored(driver) == before)
    }

    @Test func urls_count_thatExpressionsMade() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(spec)
        let before = stored(driver)
        let url = String(repeating: "u", count: 500)
        try driver.succeed(job, RunEnd(.success(.null), url: url))
        // Of the link that has ended.
        #expect(try driver.row(job).link == 1)
        #expect(stored(driver) >= before + 500)
    }

    @Test func errors_count_whereverTheyStand() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(spec)
        let before = stored(driver)
        try driver.fail(job, JobError(.network, String(repeating: "x", count: 4000)))
        // Stored twice: as the job's outcome and as its link's.
        #expect(stored(driver) >= before + 8000)
        let waiting = try driver.submit(["source": ["type": "url", "url": "http://h/"], "retry": ["max": 3]])
        let without = stored(driver)
        try driver.fail(waiting, JobError(.network, String(repeating: "x", count: 4000), retryable: true))
        #expect(try driver.row(waiting).state == .scheduled)
        #expect(stored(driver) >= without + 4000)
    }

    @Test func checkpoints_count_untilTheirJobIsOver() throws {
        let driver = try CoreDriver()
        let download: JSON = ["type": "download", "url": "http://h/", "path": "x"]
        let job = try driver.submit(["source": download, "retry": ["max": 0]])
        let before = stored(driver)
        driver.send(.run(try driver.run(of: job), .checkpoint([UInt8](repeating: 0x20, count: 60_000), { _ in })))
        #expect(stored(driver) >= before + 60_000)
        try driver.succeed(job)
        #expect(stored(driver) < before + 10_000)
    }

    @Test func submissions_areRefused_byTheirOwnersQuotaOnly() throws {
        var settings = CoreSettings()
        settings.storedPerUser = 5_000
        let driver = try CoreDriver(settings)
        var submitted = 0
        let refusal = #expect(throws: ProtocolError.self) {
            while submitted < 100 {
                _ = try driver.submit(spec)
                submitted += 1
            }
        }
        #expect((1..<20).contains(submitted))
        // As `server.usage` says.
        #expect(refusal?.message.contains("take up \(stored(driver)) of 5000 bytes") == true)
        #expect(throws: Never.self) { try driver.submit(spec, as: 2) }
    }

    @Test func key_findsItsJob_atEveryLimit() throws {
        let keyed: JSON = ["source": ["type": "url", "url": "http://h/"], "key": "k", "retry": ["max": 0]]
        for limit in ["stored", "waiting", "queue", "disk"] {
            var settings = CoreSettings()
            // Without room for another job like this, unless it is removed.
            settings.storedPerUser = limit == "stored" ? 2_200 : 10_000
            settings.limits.queuedJobsPerUser = 2
            settings.queues += [QueueSettings(name: "q")]
            let driver = try CoreDriver(settings)
            let spec = limit == "queue" ? keyed.with(["queue": "q"]) : keyed
            let job = try driver.submit(spec)
            try driver.succeed(job, #""\#(String(repeating: "x", count: 1_500))""#)
            switch limit {
            case "stored": #expect(stored(driver) > settings.storedPerUser - JobRow.fixedSize)
            case "waiting":
                for _ in 0..<2 { _ = try driver.submit(["source": ["type": "value", "value": 1], "held": true]) }
            case "queue":
                settings.queues.removeLast()
                driver.send(.configure(settings))
            default: driver.send(.room(shortage: "The disk is full."))
            }
            #expect(try driver.submit(spec) == job, "\(limit)")
            let other = try driver.new(spec.with(["label": "other"]))
            guard case .submitted(let answers)? = driver.ask(.submit([other])) else { return _ = Issue.record() }
            let refusal = #expect(throws: ProtocolError.self) { try answers[0].get() }
            #expect(refusal?.data["job"] == JSON(Int(job)), "\(limit): \(refusal?.message ?? "")")
        }
    }

    @Test func noneIsRemoved_whenThatFreesTooLittle() throws {
        var settings = CoreSettings()
        settings.storedPerUser = 20_000
        let driver = try CoreDriver(settings)
        let child: JSON = ["source": ["type": "url", "url": "http://h/"], "retry": ["max": 0]]
        let list = try driver.submit(["source": ["type": "list", "jobs": [child, child]]])
        let old = try driver.submit(child)
        try driver.succeed(old)
        let first = try #require(driver.live.values.map(\.job).filter { $0 > list }.min())
        // That of a child is kept as long as its list is not over.
        try driver.succeed(first, #""\#(String(repeating: "x", count: 14_000))""#)
        #expect(throws: ProtocolError.self) {
            try driver.submit(["source": ["type": "value", "value": .string(String(repeating: "v", count: 6_000))]])
        }
        #expect(driver.exists(old))
    }

    @Test func result_isKept_asOlderJobsMakeRoomForIt() throws {
        var settings = CoreSettings()
        settings.storedPerUser = 100_000
        let driver = try CoreDriver(settings)
        // More than one round removes.
        let old = try (0..<150).map { _ in try driver.submit(["source": ["type": "value", "value": 1]]) }
        let job = try driver.submit(["source": ["type": "url", "url": "http://h/"]])
        try driver.succeed(job, #""\#(String(repeating: "x", count: 90_000))""#)
        driver.advance(by: 1)
        #expect(try driver.row(job).state == .succeeded)
        #expect(old.prefix(70).count(where: driver.exists) == 0, "the oldest go first")
        #expect(stored(driver) <= settings.storedPerUser)
    }

    @Test func tooManyFinishedJobs_goFromWhoHasMost() throws {
        var settings = CoreSettings()
        settings.retentionCount = 10
        let driver = try CoreDriver(settings)
        let few = try (0..<3).map { _ in try driver.submit(["source": ["type": "value", "value": 1]], as: 2) }
        let many = try (0..<30).map { _ in try driver.submit(["source": ["type": "value", "value": 1]], as: 1) }
        driver.advance(by: 60)
        #expect(few.allSatisfy(driver.exists))
        #expect(many.suffix(5).allSatisfy(driver.exists), "the newest ones stay")
        #expect(!many.prefix(20).contains(where: driver.exists))
    }
}
