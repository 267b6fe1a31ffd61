import JobModel
import JobCore
import Testing

/// Isolation: one user's jobs cannot block another's.
@Suite struct SharingTests {
    private func url(_ host: String = "h") -> JSON {
        ["source": ["type": "url", "url": .string("http://\(host)/")], "retry": ["max": 0]]
    }

    private func driver(slots: Int, perHost: Int = 6) throws -> CoreDriver {
        var settings = CoreSettings()
        settings.queues = [QueueSettings(name: "default", concurrency: slots)]
        settings.perHost = perHost
        return try CoreDriver(settings)
    }

    private func owners(_ driver: CoreDriver) -> [UInt32: Int] {
        driver.live.values.reduce(into: [:]) { $0[$1.owner, default: 0] += 1 }
    }

    @Test func priority_countsAmongOnesOwnJobsOnly() throws {
        let driver = try driver(slots: 1)
        let running = try driver.submit(url(), as: 1)
        var urgent = JSONObject()
        urgent.append("source", url()["source"] ?? .null)
        urgent.append("priority", 1000)
        for _ in 0..<3 { _ = try driver.submit(.object(urgent), as: 1) }
        let other = try driver.submit(url(), as: 2)
        try driver.succeed(running)
        #expect(driver.live.values.map(\.job) == [other])
    }

    @Test func perUserOfTwo_isTwo() throws {
        var settings = CoreSettings()
        settings.queues = [QueueSettings(name: "default", concurrency: 8, perUser: 2)]
        let driver = try CoreDriver(settings)
        for _ in 0..<5 { _ = try driver.submit(url(), as: 1) }
        #expect(owners(driver) == [1: 2])
    }

    @Test func jobForAnotherHost_starts_behindManyForAFullOne() throws {
        let driver = try driver(slots: 4, perHost: 1)
        for _ in 0..<300 { _ = try driver.submit(url(), as: 1, host: "h:80") }
        #expect(driver.live.count == 1)
        // By now it is known that all jobs behind the window are for the full host.
        for _ in 0..<2 {
            let other = try driver.submit(url(), as: 1, host: "other:80")
            #expect(driver.live.values.contains { $0.job == other })
            try driver.succeed(other)
        }
    }

    @Test func host_isSharedAmongOwners_howeverSlowOnesTransfersAre() throws {
        let driver = try driver(slots: 64, perHost: 6)
        for _ in 0..<12 { _ = try driver.submit(url(), as: 1, host: "h:80") }
        #expect(owners(driver) == [1: 4], "of six permits one owner gets three quarters")
        for _ in 0..<12 { _ = try driver.submit(url(), as: 2, host: "h:80") }
        #expect(owners(driver) == [1: 4, 2: 2])
        let first = try #require(driver.live.values.filter { $0.owner == 1 }.map(\.job).min())
        try driver.succeed(first)
        #expect(owners(driver) == [1: 3, 2: 3])
    }

    @Test func retryAfter_holdsBackNoOtherOwner() throws {
        let driver = try driver(slots: 64)
        let first = try driver.submit(url(), as: 1, host: "h:80")
        var busy = JobError(.http, "It is busy.", retryable: true)
        busy.retryAfter = 100
        busy.retryAfterHost = "h:80"
        try driver.fail(first, busy)
        let own = try driver.submit(url(), as: 1, host: "h:80")
        let others = try driver.submit(url(), as: 2, host: "h:80")
        #expect(driver.live.values.map(\.job) == [others])
        driver.advance(by: 101)
        #expect(Set(driver.live.values.map(\.job)) == [own, others])
    }
}
