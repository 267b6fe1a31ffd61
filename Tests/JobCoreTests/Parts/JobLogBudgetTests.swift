import Testing

@testable import JobCore

@Suite struct JobLogBudgetTests {
    /// Of so many entries at once, those that are written.
    private func count(
        _ budget: inout JobLogBudget, _ isTrouble: Bool, of owner: UInt32 = 1, at now: Int64, entries: Int = 2000
    ) -> Int {
        (0..<entries).count { _ in budget.admit(isTrouble: isTrouble, of: owner, at: now) != nil }
    }

    @Test func entries_areLeftOut_pastABurst_andTroubleGoesOn() {
        var budget = JobLogBudget()
        #expect(count(&budget, false, at: 0) == 700)
        #expect(count(&budget, true, at: 0) == 300)
        #expect(count(&budget, true, at: 500_000_000) == 50, "a hundred a second")
        #expect(count(&budget, false, at: 1_000_000_000) == 0, "the reserve comes first")
        #expect(count(&budget, false, at: 60_000_000_000) == 700)
    }

    @Test func owner_isWrittenOf_whateverOthersDo() {
        var budget = JobLogBudget()
        #expect(count(&budget, true, of: 1, at: 0) == 1000)
        #expect(count(&budget, true, of: 2, at: 0) == 500, "half of it")
        #expect(count(&budget, true, of: 1, at: 1_000_000_000) == 50, "the other half")
        #expect(count(&budget, false, of: 3, at: 1_000_000_000, entries: 100) == 100)
    }

    @Test func owner_hasAllOfItAgain_onceOthersHaveBeenSilent() {
        var budget = JobLogBudget()
        for owner: UInt32 in 1...10 { _ = count(&budget, true, of: owner, at: 0) }
        #expect(count(&budget, true, of: 1, at: 60_000_000_000) == 1000)
        #expect(budget.ownerCount == 1)
    }

    @Test func owners_areBounded_andManyWriteLittleMoreThanOne() {
        var budget = JobLogBudget()
        let written = (0..<10_000).reduce(0) { $0 + count(&budget, true, of: UInt32($1), at: 0, entries: 1000) }
        #expect(budget.ownerCount == JobLogBudget.mostOwners + 1)
        #expect(written < 5 * Int(JobLogBudget.most))
        #expect(count(&budget, true, of: 7, at: 60_000_000_000) == 1000, "they are forgotten")
    }

    @Test func leftOut_isToldOnce_byTheNextThatIsWritten() {
        var budget = JobLogBudget()
        while budget.admit(isTrouble: true, of: 1, at: 0) != nil {}
        #expect(budget.admit(isTrouble: true, of: 1, at: 0) == nil)
        #expect(budget.admit(isTrouble: true, of: 1, at: 1_000_000_000) == 2)
        #expect(budget.admit(isTrouble: true, of: 1, at: 1_000_000_000) == 0)
    }

    @Test func budget_standsStrangeTimes() {
        var budget = JobLogBudget()
        for time in [Int64.max, .min, 0, .max, -1] { _ = budget.admit(isTrouble: true, of: 1, at: time) }
        #expect(budget.admit(isTrouble: true, of: 1, at: 0) != nil)
    }
}
