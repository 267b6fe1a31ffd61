import DeferredKit
import Testing

/// A Deferred that ends up waiting for itself never hangs.
@Suite struct CycleTests {
    @Test func promise_fails_whenBoundToItself() {
        let promise = Promise<Int, any Error>()
        promise.resolve(with: promise.deferred)
        #expect(promise.deferred.error is CycleError)
    }

    @Test func promise_fails_whenBoundToWhatWaitsForIt() {
        let promise = Promise<Int, any Error>()
        let last = promise.deferred.map { $0 }.then { $0 }.finally { _ in }
        promise.resolve(with: last)
        #expect(promise.deferred.error is CycleError)
        #expect(last.error is CycleError)
    }

    @Test func promises_fail_whenBoundToEachOther() {
        let first = Promise<Int, any Error>()
        let second = Promise<Int, any Error>()
        first.resolve(with: second.deferred)
        #expect(first.deferred.outcome == nil)
        second.resolve(with: first.deferred)
        #expect(first.deferred.error is CycleError)
        #expect(second.deferred.error is CycleError)
    }

    @Test func link_fails_whenItsClosureReturnsTheLink() {
        let itself = Promise<Deferred<Int, any Error>, Never>()
        let promise = Promise<Int, any Error>()
        let link = promise.deferred.flatMap { _ in itself.deferred.value! }
        itself.succeed(link)
        promise.succeed(1)
        #expect(link.error is CycleError)
    }

    @Test func link_fails_whenItsClosureReturnsWhatWaitsForTheLink() {
        let below = Promise<Deferred<Int, any Error>, Never>()
        let promise = Promise<Int, any Error>()
        let link = promise.deferred.then { _ in below.deferred.value! }
        let last = link.map { $0 }.map { $0 }
        below.succeed(last)
        promise.succeed(1)
        #expect(link.error is CycleError)
        #expect(last.error is CycleError)
    }

    @Test func promise_fails_whenItWaitsForAListOfItself() {
        let promise = Promise<Int, any Error>()
        let other = Promise<Int, any Error>()
        let list = Deferred.all([other.deferred, promise.deferred.map { $0 }])
        promise.resolve(with: list.map(\.count))
        #expect(promise.deferred.error is CycleError)
        #expect(list.error is CycleError)
        #expect(other.isCancelled)
    }

    @Test func pair_fails_whenAMemberWaitsForIt() {
        let promise = Promise<Int, any Error>()
        let pair = both(promise.deferred, Deferred<Int, any Error>.never)
        promise.resolve(with: pair.map(\.0))
        #expect(pair.error is CycleError)
    }

    @Test func typedDeferred_fails_whenItsFailureIsACycleError() {
        let promise = Promise<Int, CycleError>()
        promise.resolve(with: promise.deferred.map { $0 })
        #expect(promise.deferred.outcome == .failure(CycleError()))
    }

    @Test func typedDeferred_stopsTheProgram_whenItsFailureCannotHoldACycleError() async {
        await #expect(processExitsWith: .failure) {
            let promise = Promise<Int, Never>()
            promise.resolve(with: promise.deferred.map { $0 })
        }
        await #expect(processExitsWith: .failure) {
            let promise = Promise<Int, Oops>()
            promise.resolve(with: promise.deferred)
        }
    }

    @Test func link_fails_whenItWasCancelledAndItsClosureReturnsWhatWaitsForIt() {
        // Its failure is typed, so its producer decides about cancellation, which continues to the closure's Deferred.
        let below = Promise<Deferred<Int, CycleError>, Never>()
        let promise = Promise<Int, CycleError>()
        let other = promise.deferred.map { $0 }
        let link = promise.deferred.flatMap { _ in below.deferred.value! }
        let last = link.map { $0 }
        below.succeed(last)
        link.cancel()
        #expect(link.outcome == nil && other.outcome == nil)
        promise.succeed(1)
        #expect(link.outcome == .failure(CycleError()))
        #expect(last.outcome == .failure(CycleError()))
    }

    @Test func diamond_isNoCycle() {
        let top = Promise<Int, any Error>()
        let left = top.deferred.map { $0 + 1 }
        let right = top.deferred.map { $0 + 2 }
        let promise = Promise<[Int], any Error>()
        let last = promise.deferred.map { $0 }
        promise.resolve(with: Deferred.all([left, right, top.deferred]))
        top.succeed(0)
        #expect(last.value == [1, 2, 0])
    }
}
