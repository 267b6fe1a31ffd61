import Testing

@testable import JobCore

@Suite struct JobLogBudgetTests {
    @Test func entries_areLeftOut_pastABurst_andTroubleGoesOn() {
        var budget = JobLogBudget()
        func count(_ isTrouble: Bool, at now: Int64) -> Int {
            (0..<2000).count { _ in budget.admit(isTrouble: isTrouble, at: now) != nil }
        }
        #expect(count(false, at: 0) == 700)
        #expect(count(true, at: 0) == 300)
        #expect(count(true, at: 500_000_000) == 50, "a hundred a second")
        #expect(count(false, at: 1_000_000_000) == 0, "the reserve comes first")
        #expect(count(false, at: 60_000_000_000) == 700)
    }

    @Test func leftOut_isToldOnce_byTheNextThatIsWritten() {
        var budget = JobLogBudget()
        while budget.admit(isTrouble: true, at: 0) != nil {}
        #expect(budget.admit(isTrouble: true, at: 0) == nil)
        #expect(budget.admit(isTrouble: true, at: 1_000_000_000) == 2)
        #expect(budget.admit(isTrouble: true, at: 1_000_000_000) == 0)
    }

    @Test func budget_standsStrangeTimes() {
        var budget = JobLogBudget()
        for time in [Int64.max, .min, 0, .max, -1] { _ = budget.admit(isTrouble: true, at: time) }
        #expect(budget.admit(isTrouble: true, at: 0) != nil)
    }
}
