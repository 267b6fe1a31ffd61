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
