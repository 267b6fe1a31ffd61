import DeferredKit
import Dispatch
import Foundation
import Testing

/// Every signature of the library, against the promised type: the test is that this file compiles, with warnings as
/// errors.
@Suite struct ContractTests {
    enum Oops: Error, Equatable { case one }
    typealias Typed = Deferred<Int, Oops>
    typealias Chain = Deferred<Int, any Error>
    typealias Text = Deferred<String, Oops>
    typealias ChainText = Deferred<String, any Error>
    /// A method that takes an executor and a closure.
    typealias On<Closure, Value> = (Loop, Closure) -> Value
    typealias Of<Input, Value> = @Sendable (Input) -> Value
    typealias Throwing<Input, Value> = @Sendable (Input) throws -> Value

    /// As an event loop would be: one line.
    final class Loop: CallbackExecutor { func submit(_ job: @escaping @Sendable () -> Void) { job() } }

    struct Answer: DataSource { func start() -> Chain { .succeeded(42) } }

    @Test func types_areSendable() {
        func require<T: Sendable>(_: T.Type) {}
        func requireError<T: Error & Equatable>(_: T.Type) {}
        require(Promise<Int, Oops>.self)
        require(Typed.self)
        require(Observation.self)
        require(WorkQueue.self)
        require(ProgressUpdate.self)
        require(FailureGroup<Oops>.self)
        require((any CallbackExecutor).self)
        require((any DataSource<Int>).self)
        requireError(TimeoutError.self)
        requireError(CycleError.self)
        let group: any Error = FailureGroup(failures: [Oops.one])
        #expect((group as? FailureGroup<Oops>)?.failures == [.one])
    }

    @Test func values_haveTheirSignatures() {
        _ = ProgressUpdate.init(completed:total:) as (Int64, Int64?) -> ProgressUpdate
        _ = ProgressUpdate.fraction(_:) as (Double) -> ProgressUpdate
        _ = ProgressUpdate(completed: 1, total: nil).fraction as Double?
        _ = TimeoutError(after: .seconds(1)).after as Duration
        _ = CycleError()
        _ = UnhandledFailure.setHandler(_:) as ((@Sendable (any Error) -> Void)?) -> Void
        let make = Promise.init(onCancel:) as ((@Sendable (Promise<Int, Oops>) -> Void)?) -> Promise<Int, Oops>
        let promise = make(nil)
        _ = promise.resolve(_:) as (Result<Int, Oops>) -> Bool
        _ = promise.succeed(_:) as (Int) -> Bool
        _ = promise.fail(_:) as (Oops) -> Bool
        _ = promise.resolve(with:) as (Typed) -> Void
        _ = promise.report(_:) as (ProgressUpdate) -> Void
        _ = promise.isCancelled as Bool
        _ = promise.deferred as Typed
        promise.succeed(1)
        promise.fail(.one)
        promise.resolve(.success(1))
    }

    @Test func deferred_hasItsSignatures() {
        _ = Deferred.init(_:) as (Result<Int, Oops>) -> Typed
        _ = Deferred.succeeded(_:) as (Int) -> Typed
        _ = Deferred.failed(_:) as (Oops) -> Typed
        _ = Deferred.never as Typed
        _ = Deferred.run(on:_:) as On<@Sendable () throws(Oops) -> Int, Typed>
        func run(on executor: some CallbackExecutor) { _ = Chain.run(on: executor) { 1 } }
        run(on: .inline)
        run(on: .queue(DispatchQueue(label: "outside")))
        run(on: .operations(OperationQueue()))
        run(on: .background)
        run(on: .main)
        let one = Typed.succeeded(1)
        _ = one.outcome as Typed.Outcome?
        _ = one.get as () async throws(Oops) -> Int
        _ = Deferred<Int, Never>.succeeded(1).get as () async -> Int
        _ = one.wait(timeout:) as (Duration) -> Typed.Outcome?
        _ = one.cancel as () -> Void
        _ = one.upon(on:_:) as On<Of<Typed.Outcome, Void>, Observation>
        _ = one.onProgress(on:_:) as On<Of<ProgressUpdate, Void>, Observation>
        one.upon { _ in }.cancel()
        one.upon { _ in }
        one.onProgress { _ in }
        _ = one.map(on:_:) as On<Of<Int, String>, Text>
        _ = one.map(on:_:) as On<@Sendable (Int) throws(Oops) -> String, Text>
        _ = one.flatMap(on:_:) as On<Of<Int, Text>, Text>
        _ = one.flatMap(on:_:) as On<@Sendable (Int) throws(Oops) -> Text, Text>
        _ = one.mapError(on:_:) as On<Of<Oops, CycleError>, Deferred<Int, CycleError>>
        _ = one.flatMapError(on:_:) as On<Of<Oops, Deferred<Int, Never>>, Deferred<Int, Never>>
        _ = one.finally(on:_:) as On<Of<Typed.Outcome, Void>, Typed>
        _ = one.erased as () -> Chain
        one.finally { _ in }
    }

    @Test func lists_haveTheirSignatures() {
        typealias First = Deferred<(index: Int, value: Int), FailureGroup<Oops>>
        _ = Deferred.all(_:) as ([Typed]) -> Deferred<[Int], Oops>
        _ = Deferred.settled(_:) as ([Typed]) -> Deferred<[Typed.Outcome], Never>
        _ = Deferred.firstSuccess(_:) as (ArraySlice<Typed>) -> First
        _ = Deferred.firstResolved(_:) as (CollectionOfOne<Typed>) -> Deferred<Typed, Never>
        let one = Typed.succeeded(1)
        _ = both(one) as Typed
        _ = both(one, .succeeded("a"), .succeeded(true)) as Deferred<(Int, String, Bool), Oops>
    }

    @Test func chain_hasItsSignatures() async throws {
        let one = Chain.succeeded(1)
        _ = Deferred.init(priority:_:) as (TaskPriority?, @escaping @Sendable () async throws -> Int) -> Chain
        _ = one.then(on:_:) as On<Throwing<Int, String>, ChainText>
        _ = one.then(on:_:) as On<Throwing<Int, ChainText>, ChainText>
        _ = one.then(on:_:) as On<Throwing<Int, Text>, ChainText>
        typealias Pair<Success, Failure> = (Loop, Success, Failure) -> ChainText
        _ = one.then(on:_:fail:) as Pair<Throwing<Int, String>, Throwing<any Error, String>>
        _ = one.then(on:_:fail:) as Pair<Throwing<Int, ChainText>, Throwing<any Error, ChainText>>
        _ = one.then(on:_:fail:) as Pair<Throwing<Int, Text>, Throwing<any Error, Text>>
        _ = one.fail(on:_:) as On<Throwing<any Error, Int>, Chain>
        _ = one.fail(on:_:) as On<Throwing<any Error, Chain>, Chain>
        _ = one.fail(on:_:) as On<Throwing<any Error, Typed>, Chain>
        _ = one.both(on:_:) as On<Throwing<Chain.Outcome, String>, ChainText>
        _ = one.both(on:_:) as On<Throwing<Chain.Outcome, ChainText>, ChainText>
        _ = one.both(on:_:) as On<Throwing<Chain.Outcome, Text>, ChainText>
        one.then { $0 }
        one.then { _ in Typed.succeeded(1) }
        one.then({ _ in Chain.succeeded(1) }, fail: { _ in .succeeded(0) })
        one.fail { _ in 0 }
        one.fail { _ in Chain.succeeded(1) }
        one.both { _ in 1 }
        one.both { _ in Typed.succeeded(1) }
        #expect(try await Chain { 1 }.get() == 1)
    }

    @Test func work_hasItsSignatures() {
        let one = Chain.succeeded(1)
        _ = one.timeout(_:clock:) as (Duration, SuspendingClock) -> Chain
        _ = one.timeout(.seconds(1))
        typealias Retry<Delay, Condition, Operation> = (Int, Delay, SuspendingClock, Condition, Operation) -> Chain
        _ =
            Deferred.retry(attempts:delay:clock:if:_:)
            as Retry<Of<Int, Duration>, Of<any Error, Bool>, Of<Int, Chain>>
        _ = Chain.retry(attempts: 1) { .succeeded($0) }
        let queue = (WorkQueue.init(concurrency:suspended:) as (Int, Bool) -> WorkQueue)(1, true)
        _ = queue.add(priority:_:) as (Int, @escaping @Sendable () -> Chain) -> Chain
        _ = queue.cancelAll as () -> Void
        _ = queue.drained as () async -> Void
        queue.concurrency += 1
        queue.isSuspended = false
        _ = Answer().start(on:priority:) as (WorkQueue, Int) -> Chain
        _ = Answer().start(on: queue)
        let source: any DataSource<Int> = Answer()
        _ = source.start() as Chain
    }
}
