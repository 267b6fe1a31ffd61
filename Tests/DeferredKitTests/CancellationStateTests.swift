import DeferredKit
import Dispatch
import Testing

/// Cancellation of Deferreds that are paused, running, waiting for an executor or without a producer, and inside
/// callbacks.
@Suite struct CancellationStateTests {
    // MARK: Paused, running, waiting for its executor

    @Test func cancel_failsAtOnceAndCancelsWhatComes_whenTheClosureIsRunning() {
        let inner = Promise<Int, any Error>()
        let outer = Promise<Int, any Error>()
        let link = Promise<Deferred<Int, any Error>, Never>()
        let paused = outer.deferred.flatMap { _ in
            link.deferred.value?.cancel()
            return inner.deferred
        }
        link.succeed(paused)
        outer.succeed(1)
        #expect(paused.isCancelled)
        #expect(inner.isCancelled)
    }

    @Test func cancel_releasesTheClosureUnrun_whenItsExecutorHasNotStarted() {
        let journal = Journal<String>()
        let population = Population()
        let queue = DispatchQueue(label: "suspended")
        queue.suspend()
        let link = Deferred<Int, any Error>.succeeded(1).map(on: .queue(queue)) { [token = population.token()] value in
            withExtendedLifetime(token) { journal.note("ran") }
            return value
        }
        link.cancel()
        #expect(link.isCancelled)
        #expect(population.count == 0)
        queue.resume()
        queue.sync {}
        #expect(journal.entries.isEmpty)
    }

    @Test func run_doesNotRun_whenCancelledBefore() {
        let journal = Journal<String>()
        let queue = DispatchQueue(label: "suspended")
        queue.suspend()
        let run = Deferred<Int, any Error>.run(on: .queue(queue)) {
            journal.note("ran")
            return 1
        }
        run.cancel()
        #expect(run.isCancelled)
        queue.resume()
        queue.sync {}
        #expect(journal.entries.isEmpty)
    }

    @Test func run_decidesItself_whenCancelledBeforeAndFailureIsTyped() {
        let queue = DispatchQueue(label: "suspended")
        queue.suspend()
        let run = Deferred<Int, Oops>.run(on: .queue(queue)) { 1 }
        run.cancel()
        #expect(run.outcome == nil)
        queue.resume()
        queue.sync {}
        #expect(run.outcome == .success(1))
    }

    // MARK: No producer left

    @Test func cancel_failsAtOnce_whenATypedPromiseWasDropped() {
        let last = Promise<Int, Oops>().deferred.map { $0 }.erased()
        last.cancel()
        #expect(last.isCancelled)
        // The link in between is held, so it is still there but will never resolve.
        let held = Promise<Int, Oops>().deferred.map { $0 }
        let below = held.map { $0 }.erased()
        below.cancel()
        #expect(below.isCancelled)
        let again = held.erased()
        again.cancel()
        #expect(again.isCancelled)
    }

    @Test func cancel_failsWhatWaits_whenThePromiseIsDroppedAfterwards() {
        var promise: Promise<Int, Oops>? = Promise()
        let last = promise?.deferred.map { $0 }.erased()
        last?.cancel()
        #expect(last?.outcome == nil)
        promise = nil
        #expect(last?.isCancelled == true)
    }

    @Test func cancel_failsAtOnce_whenWaitingForNever() {
        let never = Deferred<Int, Oops>.never
        let link = never.map { $0 }.erased()
        link.cancel()
        #expect(link.isCancelled)
        let plain = Deferred<Int, any Error>.never
        plain.cancel()
        #expect(plain.isCancelled)
        let hopeless = Deferred<Int, Oops>.never
        hopeless.cancel()
        #expect(hopeless.outcome == nil)
    }

    // MARK: Inside callbacks

    @Test func onCancel_isFinishedBeforeCallbacksRun_whenItResolves() {
        let journal = Journal<String>()
        let promise = Promise<Int, any Error> { promise in
            promise.succeed(1)
            journal.note("onCancel ends")
        }
        promise.deferred.upon { _ in journal.note("callback") }
        promise.deferred.cancel()
        #expect(journal.entries == ["onCancel ends", "callback"])
    }

    @Test func promise_mayBeCancelledAgain_insideItsOnCancel() {
        let journal = Journal<Bool>()
        let promise = Promise<Int, any Error> { promise in
            promise.deferred.cancel()
            promise.deferred.map { $0 }.cancel()
            promise.report(.fraction(0.5))
            journal.note(promise.isCancelled && promise.deferred.outcome == nil)
            journal.note(promise.succeed(7))
        }
        let link = promise.deferred.map { $0 + 1 }
        link.cancel()
        #expect(journal.entries == [true, true])
        #expect(promise.deferred.value == 7)
        #expect(link.value == 8)
    }

    @Test func promise_failsAfterItsOnCancel_whenThatOnlyCancelsAgain() {
        let journal = Journal<Int>()
        let promise = Promise<Int, any Error> { promise in
            journal.note(1)
            promise.deferred.cancel()
        }
        promise.deferred.cancel()
        #expect(journal.entries == [1])
        #expect(promise.deferred.isCancelled)
    }
}
