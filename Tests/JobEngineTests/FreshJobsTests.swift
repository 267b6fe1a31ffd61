import Testing

@testable import JobEngine

@Suite struct FreshJobsTests {
    @Test func firstJob_wakesTheEngine_andNoOtherUntilItHasLooked() {
        let fresh = FreshJobs()
        #expect(fresh.add(1))
        #expect(!fresh.add(2) && !fresh.add(1))
        #expect(fresh.take() == [1, 2, 1] && fresh.take().isEmpty)
        #expect(!fresh.add(3), "it is looking")
        #expect(!fresh.settle(isAwaited: false), "there is more to look at")
        #expect(fresh.take() == [3])
        #expect(fresh.settle(isAwaited: false))
        #expect(fresh.add(4))
    }

    @Test func jobs_waitForTheEngine_whereItLooksByItself() {
        let fresh = FreshJobs()
        #expect(fresh.settle(isAwaited: true))
        #expect(!fresh.add(1))
        #expect(fresh.settle(isAwaited: true))
        #expect(fresh.take() == [1])
    }
}
