import Testing

@testable import JobCore

@Suite struct JobLogBudgetTests {
    /// Of 2,000 entries at once, those that are written.
    private func count(_ budget: inout JobLogBudget, at now: Int64) -> Int {
        (0..<2000).count { _ in budget.admit(at: now) != nil }
    }

    @Test func entries_areLeftOut_pastABurst() {
        var budget = JobLogBudget()
        #expect(count(&budget, at: 0) == 1000)
        #expect(count(&budget, at: 500_000_000) == 50, "a hundred a second")
        #expect(count(&budget, at: 60_000_000_000) == 1000)
    }

    @Test func leftOut_isToldOnce_byTheNextThatIsWritten() {
        var budget = JobLogBudget()
        while budget.admit(at: 0) != nil {}
        #expect(budget.admit(at: 0) == nil)
        #expect(budget.admit(at: 1_000_000_000) == 2)
        #expect(budget.admit(at: 1_000_000_000) == 0)
    }

    @Test func budget_standsStrangeTimes() {
        var budget = JobLogBudget()
        for time in [Int64.max, .min, 0, .max, -1] { _ = budget.admit(at: time) }
        #expect(budget.admit(at: 0) != nil)
    }
}
