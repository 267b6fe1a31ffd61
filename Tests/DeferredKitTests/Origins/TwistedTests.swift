import DeferredKit
import Testing

/// The behaviour of Twisted's Deferreds, the model of HLDeferred.
@Suite struct TwistedTests {
    @Test func callbackAndErrback_alternate_likeTwoRails() {
        let journal = Journal<String>()
        Deferred<Int, any Error>.succeeded(0)
            .then { _ -> Int in throw Oops.one }
            .then({ $0 }, fail: { _ -> Int in throw Oops.two })
            .fail { error in
                journal.note("\(error)")
                return 1
            }
            .then { journal.note("\($0)") }
        #expect(journal.entries == ["two", "1"])
    }

    @Test func addBoth_runsOnEitherRail_andPutsTheChainBackOnTheFirst() {
        let last = Deferred<Int, any Error>.failed(Oops.one).both { _ in 5 }.then { $0 + 1 }
        #expect(last.value == 6)
    }

    @Test func innerDeferred_runsItsOwnCallbacksFirst_whenItWasFiredBeforeItIsReturned() {
        let journal = Journal<String>()
        let inner = Promise<Int, any Error>()
        inner.deferred.then { _ in journal.note("inner") }
        let outer = Promise<Int, any Error>()
        outer.deferred
            .then { _ in
                inner.succeed(1)
                journal.note("callback ends")
                return inner.deferred
            }
            .then { _ in journal.note("outer") }
        outer.succeed(0)
        #expect(journal.entries == ["callback ends", "inner", "outer"])
    }

    @Test func cancel_callsTheCancellerOnce_thenErrbacks() {
        let journal = Journal<String>()
        let promise = Promise<Int, any Error> { _ in journal.note("canceller") }
        let last = promise.deferred.fail { error in
            journal.note(error is CancellationError ? "errback" : "?")
            return 0
        }
        promise.deferred.cancel()
        promise.deferred.cancel()
        #expect(journal.entries == ["canceller", "errback"])
        #expect(last.value == 0)
    }

    @Test func cancel_takesTheCancellersOutcome_whenItResolves() {
        let promise = Promise<Int, any Error> { $0.succeed(99) }
        let last = promise.deferred.then { $0 + 1 }
        last.cancel()
        #expect(last.value == 100)
    }

    @Test func cancel_reachesTheInnerDeferred_whenTheChainIsPaused() {
        let journal = Journal<String>()
        let inner = Promise<Int, any Error> { _ in journal.note("inner cancelled") }
        let outer = Deferred<Int, any Error>.succeeded(1).then { _ in inner.deferred }
        outer.cancel()
        #expect(journal.entries == ["inner cancelled"])
        #expect(outer.isCancelled)
    }

    @Test func lateResult_isIgnored_afterCancellation() {
        let promise = Promise<Int, any Error>()
        promise.deferred.cancel()
        #expect(!promise.succeed(1))
        #expect(promise.deferred.isCancelled)
    }

    @Test func deferredThatWaitsForItself_fails_insteadOfHanging() {
        let promise = Promise<Int, any Error>()
        let link = promise.deferred.map { $0 + 1 }
        promise.resolve(with: link)
        #expect(promise.deferred.error is CycleError)
        #expect(link.error is CycleError)
    }

    @Test func chainDeferred_passesTheOutcomeOn_whenBound() {
        let first = Promise<Int, any Error>()
        let second = Promise<Int, any Error>()
        second.resolve(with: first.deferred)
        #expect(!second.succeed(5))
        #expect(!second.fail(Oops.one))
        #expect(second.deferred.outcome == nil)
        first.succeed(1)
        #expect(second.deferred.value == 1)
    }

    @Test func gatherResults_failsWithTheFirstFailure_andCancelsTheRest() {
        let journal = Journal<Int>()
        let promises = (0..<3).map { index in Promise<Int, any Error> { _ in journal.note(index) } }
        let gathered = Deferred.all(promises.map(\.deferred))
        promises[1].fail(Oops.one)
        #expect(gathered.error as? Oops == .one)
        #expect(journal.entries.sorted() == [0, 2])
    }
}
