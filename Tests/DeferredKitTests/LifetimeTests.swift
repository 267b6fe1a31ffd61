import DeferredKit
import Dispatch
import Testing

/// Which objects retain which others: nothing leaks.
@Suite struct LifetimeTests {
    private let population = Population()

    // MARK: Dropped

    @Test func callbacks_areReleased_whenThePromiseIsDropped() {
        do {
            let promise = Promise<Int, any Error> { [token = population.token()] _ in withExtendedLifetime(token) {} }
            let token = population.token()
            promise.deferred.upon { _ in withExtendedLifetime(token) {} }
            promise.deferred.onProgress { _ in withExtendedLifetime(token) {} }
            promise.deferred.map { _ in withExtendedLifetime(token) {} }.then { withExtendedLifetime(token) {} }
            #expect(population.count == 2)
        }
        #expect(population.count == 0)
    }

    @Test func heldLink_releasesItsClosure_whenThePromiseIsDropped() {
        var promise: Promise<Int, any Error>? = Promise()
        let token = population.token()
        weak let weakToken = token
        let link = promise?.deferred.map { [token] value in withExtendedLifetime(token) { value } }
        let list = promise.map { Deferred.all([$0.deferred, $0.deferred]) }
        promise = nil
        #expect(link?.outcome == nil)
        #expect(list?.outcome == nil)
        withExtendedLifetime(token) {}
        #expect(weakToken != nil)
    }

    @Test func link_doesNotKeepItsUpstream() {
        var promise: Promise<Int, any Error>? = Promise()
        weak let upstream = promise?.deferred
        let link = promise?.deferred.map { $0 }
        let pair = promise.map { both($0.deferred, $0.deferred) }
        let list = promise.map { Deferred.settled([$0.deferred]) }
        let limited = promise?.deferred.erased()
        #expect(upstream != nil)
        promise = nil
        #expect(upstream == nil)
        #expect(link?.outcome == nil && pair?.outcome == nil && list?.outcome == nil && limited?.outcome == nil)
    }

    @Test func list_isReleased_whenItsMembersAre() {
        weak var list: Deferred<[Int], any Error>?
        do {
            let promises = (0..<3).map { _ in Promise<Int, any Error>() }
            let held = Deferred.all(promises.map(\.deferred))
            list = held
            promises[0].succeed(1)
            #expect(list != nil)
        }
        #expect(list == nil)
    }

    // MARK: Resolved and cancelled

    @Test func everything_isReleased_whenResolved() {
        let promise = Promise<Int, any Error> { [token = population.token()] _ in withExtendedLifetime(token) {} }
        let token = population.token()
        promise.deferred.upon { [token] _ in withExtendedLifetime(token) {} }
        promise.deferred.onProgress { [token = population.token()] _ in withExtendedLifetime(token) {} }
        let link = promise.deferred.map { [token = population.token()] value in withExtendedLifetime(token) { value } }
        #expect(population.count == 4)
        promise.succeed(1)
        #expect(link.value == 1)
        #expect(population.count == 1)
        withExtendedLifetime(token) {}
    }

    @Test func closure_isReleased_whenItsObservationIsCancelled() {
        let promise = Promise<Int, any Error>()
        let first = promise.deferred.upon { [token = population.token()] _ in withExtendedLifetime(token) {} }
        let second = promise.deferred.onProgress { [token = population.token()] _ in withExtendedLifetime(token) {} }
        #expect(population.count == 2)
        first.cancel()
        second.cancel()
        #expect(population.count == 0)
        promise.succeed(1)
    }

    @Test func closureThatHoldsItsOwnDeferred_isReleased_atResolutionAndCancellation() {
        func hold(_ promise: Promise<Int, any Error>) {
            let token = population.token()
            let deferred = promise.deferred
            deferred.upon { _ in withExtendedLifetime((token, deferred)) {} }
            deferred.onProgress { _ in withExtendedLifetime((token, deferred)) {} }
            let itself = Promise<Deferred<Int, any Error>, Never>()
            let link = deferred.map { value in withExtendedLifetime((token, itself)) { value } }
            itself.succeed(link)
        }
        do {
            let promise = Promise<Int, any Error>()
            hold(promise)
            promise.succeed(1)
        }
        #expect(population.count == 0)
        do {
            let promise = Promise<Int, any Error>()
            hold(promise)
            promise.deferred.cancel()
        }
        #expect(population.count == 0)
    }

    @Test func deferreds_areReleased_whateverBecameOfThem() {
        weak var resolved: Deferred<Int, any Error>?
        weak var cancelled: Deferred<Int, any Error>?
        weak var paused: Deferred<Int, any Error>?
        weak var bound: Deferred<Int, any Error>?
        weak var cyclic: Deferred<Int, any Error>?
        do {
            let promise = Promise<Int, any Error>()
            let first = promise.deferred.map { $0 }
            let second = promise.deferred.map { $0 }
            let other = Promise<Int, any Error>()
            let third = Deferred<Int, any Error>.succeeded(1).flatMap { _ in other.deferred }
            let fourth = Promise<Int, any Error>()
            fourth.resolve(with: other.deferred)
            let fifth = Promise<Int, any Error>()
            fifth.resolve(with: fifth.deferred.map { $0 })
            (resolved, cancelled, paused, bound) = (first, second, third, fourth.deferred)
            cyclic = fifth.deferred
            second.cancel()
            promise.succeed(1)
        }
        #expect(resolved == nil && cancelled == nil && paused == nil && bound == nil && cyclic == nil)
    }

    @Test func values_areReleased_withTheirDeferreds() {
        do {
            let promises = (0..<3).map { _ in Promise<Population.Token, any Error>() }
            let all = Deferred.all(promises.map(\.deferred))
            let settled = Deferred.settled(promises.map(\.deferred))
            let pair = both(promises[0].deferred, promises[1].deferred)
            let first = Deferred.firstSuccess(promises.map(\.deferred))
            promises[0].succeed(population.token())
            promises[1].succeed(population.token())
            promises[2].fail(Oops.one)
            #expect(all.error as? Oops == .one)
            #expect(settled.outcome != nil && pair.outcome != nil && first.outcome != nil)
            #expect(population.count == 2)
        }
        #expect(population.count == 0)
    }

    @Test func queuedCallbacks_areReleased_afterTheyRan() {
        let queue = DispatchQueue(label: "lifetime")
        do {
            let promise = Promise<Int, any Error>()
            let token = population.token()
            promise.deferred.upon(on: .queue(queue)) { _ in withExtendedLifetime(token) {} }
            promise.deferred.onProgress(on: .queue(queue)) { _ in withExtendedLifetime(token) {} }
            _ = promise.deferred.map(on: .queue(queue)) { _ in withExtendedLifetime(token) {} }
            _ = Deferred<Void, any Error>.run(on: .queue(queue)) { withExtendedLifetime(token) {} }
            promise.report(.fraction(0.5))
            promise.succeed(1)
        }
        // Twice: a job is released after it ran, possibly while the next one runs.
        queue.sync {}
        queue.sync {}
        #expect(population.count == 0)
    }

    @Test func awaitingTask_isReleased_whenItIsCancelled() async {
        let promise = Promise<Int, any Error>()
        let other = promise.deferred.map { $0 }
        let task = await SerialTasks().start { [token = population.token()] in
            try await withExtendedLifetime(token) { promise.deferred }.get()
        }
        task.cancel()
        _ = try? await task.value
        promise.succeed(1)
        #expect(other.value == 1)
    }

    @Test func timer_isReleased_whenTheOutcomeComesFirst() async {
        let clock = ManualClock()
        weak var limited: Deferred<Int, any Error>?
        do {
            let promise = Promise<Int, any Error>()
            limited = promise.deferred.timeout(.seconds(5), clock: clock)
            await clock.slept(1)
            #expect(limited != nil)
            promise.succeed(1)
        }
        #expect(clock.sleeperCount == 0)
    }
}
