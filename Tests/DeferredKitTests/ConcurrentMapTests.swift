import DeferredKit
import Testing

/// Work for many items, only so much at a time.
@Suite struct ConcurrentMapTests {
    /// Work that the test ends.
    private final class Works: Sendable {
        let promises: [Promise<Int, any Error>]
        let started = Journal<Int>()

        init(_ count: Int) {
            promises = (0..<count).map { _ in Promise() }
        }

        func start(_ index: Int) -> Deferred<Int, any Error> {
            started.note(index)
            return promises[index].deferred
        }
    }

    @Test func works_areStartedOnlySoManyAtATime_andGiveTheirValuesInOrder() {
        let works = Works(5)
        let all = Deferred.concurrentMap(0..<5, limit: 2) { works.start($0) }
        let seen = Journal<ProgressUpdate>()
        all.onProgress { seen.note($0) }
        #expect(works.started.entries == [0, 1])
        works.promises[1].succeed(10)
        #expect(works.started.entries == [0, 1, 2])
        for index in [2, 0, 3, 4] { works.promises[index].succeed(index * 10) }
        #expect(all.value == [0, 10, 20, 30, 40])
        #expect(seen.entries.map(\.completed) == [1, 2, 3, 4])
        #expect(seen.entries.allSatisfy { $0.total == 5 })
    }

    @Test(arguments: [1, 0, -1]) func limit_isAtLeastOne(limit: Int) {
        let works = Works(2)
        let all = Deferred.concurrentMap(0..<2, limit: limit) { works.start($0) }
        #expect(works.started.entries == [0])
        works.promises[0].succeed(0)
        works.promises[1].succeed(1)
        #expect(all.value == [0, 1])
    }

    @Test func noItems_giveNoValuesAtOnce() {
        #expect(Deferred<Int, Oops>.concurrentMap([Int](), limit: 3) { _ in .succeeded(1) }.value == [])
    }

    @Test func firstFailure_failsIt_startsNothingMore_andWithdraws() {
        let works = Works(4)
        let all = Deferred.concurrentMap(0..<4, limit: 2) { works.start($0) }
        works.promises[0].fail(Oops.one)
        #expect(all.error as? Oops == .one)
        #expect(works.promises[1].isCancelled)
        #expect(works.started.entries == [0, 1])
    }

    @Test func cancelling_withdrawsFromWhatIsUnderWay() {
        let works = Works(4)
        let all = Deferred.concurrentMap(0..<4, limit: 2) { works.start($0) }
        let other = works.promises[1].deferred.map { $0 }
        all.cancel()
        #expect(all.isCancelled)
        #expect(works.promises[0].isCancelled && !works.promises[1].isCancelled)
        works.promises[1].succeed(1)
        #expect(other.value == 1)
        #expect(works.started.entries == [0, 1])
    }

    @Test func typedWorks_decideThemselves_whenItIsCancelled() {
        let promises = (0..<3).map { _ in Promise<Int, Oops> { $0.fail(.cancelled) } }
        let all = Deferred.concurrentMap(0..<3, limit: 1) { promises[$0].deferred }
        all.cancel()
        #expect(all.outcome == .failure(.cancelled))
        #expect(!promises[1].isCancelled)
    }

    @Test func manyItems_needNoStack_whenTheirWorkIsDoneAtOnce() {
        let all = Deferred<Int, any Error>.concurrentMap(0..<100_000, limit: 3) { .succeeded($0) }
        #expect(all.value?.count == 100_000)
        #expect(all.value?.last == 99_999)
    }
}
