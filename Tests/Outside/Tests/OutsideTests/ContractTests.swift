import DeferredKit
import Dispatch
import Foundation
import Testing

/// Every signature of the library, checked against the promised type: the test is that this file compiles, with
/// warnings as errors. Calls without a used result must be allowed.
@Suite struct ContractTests {
    enum Oops: Error, Equatable { case one, two }

    typealias Typed = Deferred<Int, Oops>
    typealias Chain = Deferred<Int, any Error>
    typealias Job = @Sendable () -> Void

    /// As an event loop would be: one line.
    final class Loop: CallbackExecutor { func submit(_ job: @escaping @Sendable () -> Void) { job() } }

    private func requireSendable<T: Sendable>(_: T.Type) {}
    private func requireError<T: Error & Equatable>(_: T.Type) {}

    @Test func types_areSendable() {
        requireSendable(Promise<Int, Oops>.self)
        requireSendable(Deferred<Int, Oops>.self)
        requireSendable(Observation.self)
        requireSendable(WorkQueue.self)
        requireSendable(ProgressUpdate.self)
        requireSendable(FailureGroup<Oops>.self)
        requireSendable((any CallbackExecutor).self)
        requireSendable((any DataSource<Int>).self)
        requireError(TimeoutError.self)
        requireError(CycleError.self)
        let group: any Error = FailureGroup(failures: [Oops.one])
        #expect((group as? FailureGroup<Oops>)?.failures == [.one])
    }

    @Test func executors_haveTheirSignatures() async throws {
        let submit: (Loop) -> (@escaping Job) -> Void = Loop.submit(_:)
        submit(Loop())({})
        func run(on executor: some CallbackExecutor) -> Chain { .run(on: executor) { 1 } }
        let runs = [
            run(on: .inline), run(on: .queue(DispatchQueue(label: "outside"))), run(on: .operations(OperationQueue())),
            run(on: .background), run(on: .main), run(on: Loop()),
        ]
        #expect(try await Deferred.all(runs).get() == [1, 1, 1, 1, 1, 1])
    }

    @Test func values_haveTheirSignatures() {
        let update: (Int64, Int64?) -> ProgressUpdate = ProgressUpdate.init(completed:total:)
        let fraction: (Double) -> ProgressUpdate = ProgressUpdate.fraction(_:)
        let share: Double? = update(1, 4).fraction
        let after: Duration = TimeoutError(after: .seconds(1)).after
        let failures: [Oops] = FailureGroup<Oops>(failures: []).failures
        #expect(share == 0.25 && fraction(7).fraction == 1 && after == .seconds(1) && failures.isEmpty)
        #expect(update(1, nil).fraction == nil && update(1, nil) == update(1, nil))
        #expect(CycleError() == CycleError())
        UnhandledFailure.setHandler { (_: any Error) in }
        let set: ((@Sendable (any Error) -> Void)?) -> Void = UnhandledFailure.setHandler(_:)
        set(nil)
    }

    @Test func promise_hasItsSignatures() {
        let make: ((@Sendable (Promise<Int, Oops>) -> Void)?) -> Promise<Int, Oops> = Promise.init(onCancel:)
        let promise = make { promise in promise.fail(.two) }
        let plain = Promise<Int, Oops>()
        let resolve: (Result<Int, Oops>) -> Bool = plain.resolve(_:)
        let succeed: (Int) -> Bool = plain.succeed(_:)
        let fail: (Oops) -> Bool = plain.fail(_:)
        let bind: (Typed) -> Void = promise.resolve(with:)
        let report: (ProgressUpdate) -> Void = plain.report(_:)
        let isCancelled: Bool = plain.isCancelled
        let deferred: Typed = plain.deferred
        report(.fraction(0.5))
        #expect(resolve(.success(1)) && !succeed(2) && !fail(.one) && !isCancelled)
        plain.resolve(.success(2))
        plain.succeed(2)
        plain.fail(.one)
        bind(deferred)
        #expect(promise.deferred.outcome == .success(1))
    }

    @Test func deferred_hasItsSignatures() async {
        let outcome: Typed.Outcome = Result<Int, Oops>.success(1)
        let make: (Typed.Outcome) -> Typed = Deferred.init(_:)
        let succeeded: (Int) -> Typed = Deferred.succeeded(_:)
        let failed: (Oops) -> Typed = Deferred.failed(_:)
        let never: Typed = Deferred.never
        let run: (Loop, @escaping @Sendable () throws(Oops) -> Int) -> Typed = Deferred.run(on:_:)
        let peek: Typed.Outcome? = make(outcome).outcome
        let get: () async throws(Oops) -> Int = succeeded(1).get
        let cancel: () -> Void = never.cancel
        cancel()
        #expect(peek == .success(1) && blocked(failed(.one)) == .failure(.one))
        do throws(Oops) {
            #expect(try await get() == 1)
            #expect(try await run(Loop(), { () throws(Oops) -> Int in throw .two }).get() == 0)
        } catch {
            let typed: Oops = error
            #expect(typed == .two)
        }
        let sure: () async -> Int = Deferred<Int, Never>.succeeded(1).get
        #expect(await sure() == 1)
    }

    private func blocked(_ deferred: Typed) -> Typed.Outcome? {
        let wait: (Duration) -> Typed.Outcome? = deferred.wait(timeout:)
        return wait(.seconds(1))
    }

    @Test func observers_haveTheirSignatures() {
        let one = Typed.succeeded(1)
        let upon: (Loop, @escaping @Sendable (Typed.Outcome) -> Void) -> Observation = one.upon(on:_:)
        let onProgress: (Loop, @escaping @Sendable (ProgressUpdate) -> Void) -> Observation = one.onProgress(on:_:)
        let cancel: () -> Void = upon(Loop()) { _ in }.cancel
        cancel()
        onProgress(Loop()) { _ in }.cancel()
        one.upon { _ in }
        one.onProgress { _ in }
    }

    @Test func transforms_haveTheirSignatures() async {
        let one = Typed.succeeded(1)
        let map: (Loop, @escaping @Sendable (Int) -> String) -> Deferred<String, Oops> = one.map(on:_:)
        let mapThrowing: (Loop, @escaping @Sendable (Int) throws(Oops) -> String) -> Deferred<String, Oops> =
            one.map(on:_:)
        let flatMap: (Loop, @escaping @Sendable (Int) -> Deferred<String, Oops>) -> Deferred<String, Oops> =
            one.flatMap(on:_:)
        let flatMapThrowing:
            (Loop, @escaping @Sendable (Int) throws(Oops) -> Deferred<String, Oops>) -> Deferred<String, Oops> =
                one.flatMap(on:_:)
        let mapError: (Loop, @escaping @Sendable (Oops) -> CycleError) -> Deferred<Int, CycleError> =
            one.mapError(on:_:)
        let flatMapError: (Loop, @escaping @Sendable (Oops) -> Deferred<Int, Never>) -> Deferred<Int, Never> =
            one.flatMapError(on:_:)
        let finally: (Loop, @escaping @Sendable (Typed.Outcome) -> Void) -> Typed = one.finally(on:_:)
        let erased: () -> Chain = one.erased
        #expect(map(Loop()) { "\($0)" }.outcome == .success("1"))
        #expect(mapThrowing(Loop()) { (_) throws(Oops) in throw .two }.outcome == .failure(.two))
        #expect(flatMap(Loop()) { .succeeded("\($0)") }.outcome == .success("1"))
        #expect(flatMapThrowing(Loop()) { (_) throws(Oops) in throw .one }.outcome == .failure(.one))
        #expect(mapError(Loop()) { _ in CycleError() }.outcome == .success(1))
        #expect(flatMapError(Loop()) { _ in .succeeded(0) }.outcome == .success(1))
        #expect(finally(Loop()) { _ in }.outcome == .success(1))
        #expect((try? erased().outcome?.get()) == 1)
        one.finally { _ in }
    }

    @Test func lists_haveTheirSignatures() async throws {
        typealias First = Deferred<(index: Int, value: Int), FailureGroup<Oops>>
        let all: ([Typed]) -> Deferred<[Int], Oops> = Deferred.all(_:)
        let settled: (Set<Identified>) -> Deferred<[Typed.Outcome], Never> = { Deferred.settled($0.map(\.deferred)) }
        let firstSuccess: (ArraySlice<Typed>) -> First = Deferred.firstSuccess(_:)
        let firstResolved: (CollectionOfOne<Typed>) -> Deferred<Typed, Never> = Deferred.firstResolved(_:)
        let one = Typed.succeeded(1)
        #expect(all([one, one]).outcome == .success([1, 1]))
        #expect(settled([Identified(deferred: one)]).outcome == .success([.success(1)]))
        #expect(try await firstSuccess([.failed(.one), one]).get() == (index: 1, value: 1))
        #expect(await firstResolved(CollectionOfOne(one)).get() === one)
        let single: Deferred<(Int), Oops> = both(one)
        let triple: Deferred<(Int, String, Bool), Oops> = both(one, .succeeded("a"), .succeeded(true))
        #expect(single.outcome == .success(1))
        #expect(try await triple.get() == (1, "a", true))
        #expect(try await one.pair(with: .succeeded("b")).get() == (1, "b"))
    }

    struct Identified: Hashable {
        let deferred: Typed
        static func == (lhs: Self, rhs: Self) -> Bool { lhs.deferred === rhs.deferred }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(deferred)) }
    }

    // MARK: The classic chain

    @Test func task_hasItsSignatures() async throws {
        let make: (TaskPriority?, @escaping @Sendable () async throws -> Int) -> Chain = Deferred.init(priority:_:)
        #expect(try await make(.high, { 1 }).get() == 1)
        #expect(try await Chain { 1 }.get() == 1)
    }

    @Test func then_hasItsSignatures() async throws {
        let one = Chain.succeeded(1)
        let value: (Loop, @escaping @Sendable (Int) throws -> String) -> Deferred<String, any Error> = one.then(on:_:)
        let same:
            (Loop, @escaping @Sendable (Int) throws -> Deferred<String, any Error>) -> Deferred<String, any Error> =
                one.then(on:_:)
        let other: (Loop, @escaping @Sendable (Int) throws -> Deferred<String, Oops>) -> Deferred<String, any Error> =
            one.then(on:_:)
        #expect(try await value(Loop()) { "\($0)" }.get() == "1")
        #expect(try await same(Loop()) { .succeeded("\($0)") }.get() == "1")
        #expect(try await other(Loop()) { .succeeded("\($0)") }.get() == "1")
        one.then { $0 }
        one.then { _ in Chain.succeeded(1) }
        one.then { _ in Typed.succeeded(1) }
    }

    @Test func pair_hasItsSignatures() async throws {
        typealias Value = @Sendable (Int) throws -> String
        typealias ValueHandler = @Sendable (any Error) throws -> String
        typealias Same = @Sendable (Int) throws -> Deferred<String, any Error>
        typealias SameHandler = @Sendable (any Error) throws -> Deferred<String, any Error>
        typealias Other = @Sendable (Int) throws -> Deferred<String, Oops>
        typealias OtherHandler = @Sendable (any Error) throws -> Deferred<String, Oops>
        let one = Chain.succeeded(1)
        let value: (Loop, @escaping Value, @escaping ValueHandler) -> Deferred<String, any Error> =
            one.then(on:_:fail:)
        let same: (Loop, @escaping Same, @escaping SameHandler) -> Deferred<String, any Error> = one.then(on:_:fail:)
        let other: (Loop, @escaping Other, @escaping OtherHandler) -> Deferred<String, any Error> =
            one.then(on:_:fail:)
        #expect(try await value(Loop(), { "\($0)" }, { "\($0)" }).get() == "1")
        #expect(try await same(Loop(), { .succeeded("\($0)") }, { .failed($0) }).get() == "1")
        #expect(try await other(Loop(), { .succeeded("\($0)") }, { _ in .failed(.one) }).get() == "1")
        one.then {
            $0
        } fail: { _ in
            0
        }
        one.then({ _ in Chain.succeeded(1) }, fail: { _ in .succeeded(0) })
        one.then({ _ in Typed.succeeded(1) }, fail: { _ in .succeeded(0) })
    }

    @Test func fail_hasItsSignatures() async throws {
        let failed = Chain.failed(Oops.one)
        let value: (Loop, @escaping @Sendable (any Error) throws -> Int) -> Chain = failed.fail(on:_:)
        let same: (Loop, @escaping @Sendable (any Error) throws -> Chain) -> Chain = failed.fail(on:_:)
        let other: (Loop, @escaping @Sendable (any Error) throws -> Typed) -> Chain = failed.fail(on:_:)
        #expect(try await value(Loop()) { _ in 1 }.get() == 1)
        #expect(try await same(Loop()) { _ in .succeeded(1) }.get() == 1)
        #expect(try await other(Loop()) { _ in .succeeded(1) }.get() == 1)
        failed.fail { _ in 0 }
        failed.fail { _ in Chain.succeeded(1) }
        failed.fail { _ in Typed.succeeded(1) }
    }

    @Test func both_hasItsSignatures() async throws {
        let one = Chain.succeeded(1)
        let value: (Loop, @escaping @Sendable (Chain.Outcome) throws -> String) -> Deferred<String, any Error> =
            one.both(on:_:)
        let same:
            (Loop, @escaping @Sendable (Chain.Outcome) throws -> Deferred<String, any Error>) -> Deferred<
                String, any Error
            > = one.both(on:_:)
        let other:
            (Loop, @escaping @Sendable (Chain.Outcome) throws -> Deferred<String, Oops>) -> Deferred<
                String, any Error
            > = one.both(on:_:)
        #expect(try await value(Loop()) { _ in "1" }.get() == "1")
        #expect(try await same(Loop()) { _ in .succeeded("1") }.get() == "1")
        #expect(try await other(Loop()) { _ in .succeeded("1") }.get() == "1")
        one.both { _ in 1 }
        one.both { _ in Chain.succeeded(1) }
        one.both { _ in Typed.succeeded(1) }
    }

    @Test func timing_hasItsSignatures() async throws {
        let one = Chain.succeeded(1)
        let timeout: (Duration, SuspendingClock) -> Chain = one.timeout(_:clock:)
        #expect(try await timeout(.seconds(1), SuspendingClock()).get() == 1)
        #expect(try await one.timeout(.seconds(1)).get() == 1)
        let retry:
            (
                Int, @escaping @Sendable (Int) -> Duration, SuspendingClock,
                @escaping @Sendable (any Error) -> Bool, @escaping @Sendable (Int) -> Chain
            ) -> Chain = Deferred.retry(attempts:delay:clock:if:_:)
        let second = retry(2, { _ in .zero }, SuspendingClock(), { _ in true }) { $0 == 1 ? .failed(Oops.one) : one }
        #expect(try await second.get() == 1)
        #expect(try await Chain.retry(attempts: 1) { .succeeded($0) }.get() == 1)
    }

    // MARK: Work

    struct Answer: DataSource {
        func start() -> Deferred<Int, any Error> { .succeeded(42) }
    }

    @Test func work_hasItsSignatures() async throws {
        let make: (Int, Bool) -> WorkQueue = WorkQueue.init(concurrency:suspended:)
        let queue = make(1, true)
        let add: (Int, @escaping @Sendable () -> Chain) -> Chain = queue.add(priority:_:)
        let cancelAll: () -> Void = queue.cancelAll
        let drained: () async -> Void = queue.drained
        let waiting = add(1) { .succeeded(1) }
        queue.concurrency += 1
        #expect(queue.concurrency == 2 && queue.isSuspended && waiting.outcome == nil)
        queue.isSuspended = false
        #expect(try await waiting.get() == 1)
        cancelAll()
        await drained()
        let start: (WorkQueue, Int) -> Chain = Answer().start(on:priority:)
        #expect(try await start(queue, 1).get() == 42)
        #expect(try await Answer().start(on: WorkQueue(concurrency: 1)).get() == 42)
        let source: any DataSource<Int> = Answer()
        #expect(try await source.start().get() == 42)
    }
}

extension Deferred {
    /// The method `both` hides the function, hence its module's name.
    func pair<T>(with other: Deferred<T, Failure>) -> Deferred<(Success, T), Failure> { DeferredKit.both(self, other) }
}
