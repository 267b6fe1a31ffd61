import JobModel
import Testing

@testable import JobCore

@Suite struct ActiveJobTests {
    private func seconds(_ seconds: Double) -> Int64 { Int64(seconds * 1e9) }

    // MARK: - Rates

    @Test func rate_isUnknown_beforeTwoMeasurements() {
        var meter = RateMeter()
        let first = meter.measure(100, at: 0)
        let soon = meter.measure(200, at: seconds(0.1))
        let second = meter.measure(600, at: seconds(0.5))
        #expect(first == nil && soon == nil && second == 1000)
    }

    @Test func rate_isAMean_thatForgets() {
        var meter = RateMeter()
        _ = meter.measure(0, at: 0)
        let first = meter.measure(1000, at: seconds(1))
        let between = meter.measure(1001, at: seconds(1.1))
        let second = meter.measure(1000 + 2000, at: seconds(2))
        #expect(first == 1000 && between == 1000)
        #expect(second == 0.6 * 1000 + 0.4 * 2000)
    }

    @Test func rate_beginsAnew_whereLessIsCompletedOrTheClockFalls() {
        var meter = RateMeter()
        _ = meter.measure(500, at: 0)
        _ = meter.measure(1000, at: seconds(1))
        let fallen = meter.measure(0, at: seconds(2))
        let next = meter.measure(100, at: seconds(3))
        let before = meter.measure(200, at: seconds(1))
        #expect(fallen == nil && next == 100 && before == nil)
    }

    // MARK: - Merged reports

    private func entry() throws -> ActiveJob {
        let spec = try JobSpecReader.spec(["source": ["type": "error"]], limits: JobLimits())
        return ActiveJob(Job(spec: spec, owner: 1, state: .running, createdAt: Timestamp(milliseconds: 0)))
    }

    @Test func reports_areCountedByInterval() throws {
        let entry = try entry()
        entry.report(Progress(completed: 1, total: 10), updates: 3, at: 0)
        #expect(entry.updatesSinceReport(250) == 3)
        #expect(entry.updatesSinceReport(250) == 0)
        entry.report(Progress(completed: 2, total: 10), updates: 5, at: 0)
        #expect(entry.updatesSinceReport(250) == 2)
        #expect(entry.updatesSinceReport(1000) == 5)
        entry.resetProgress()
        #expect(entry.progress == nil)
        entry.report(Progress(completed: 1, total: 10), updates: 1, at: 0)
        #expect(entry.updatesSinceReport(250) == 1 && entry.updatesSinceReport(1000) == 1)
    }

    @Test func intervals_areForgotten_whereThereAreMany() throws {
        let entry = try entry()
        entry.report(Progress(completed: 1, total: 10), updates: 2, at: 0)
        for interval in 1...17 { _ = entry.updatesSinceReport(interval) }
        #expect(entry.updatesSinceReport(17) == 0)
        #expect(entry.updatesSinceReport(1) == 2, "a count that is too high")
    }
}
