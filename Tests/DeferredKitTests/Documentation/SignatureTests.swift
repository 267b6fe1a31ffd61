import DeferredKit
import Dispatch
import Foundation
import Testing

/// Every name of the library as an outside user writes it. That this file compiles is most of the test.
@Suite struct SignatureTests {
    enum Oops: Error, Equatable { case one, two }

    struct Elsewhere: CallbackExecutor {
        func submit(_ job: @escaping @Sendable () -> Void) { job() }
    }

    struct Answer: DataSource {
        func start() -> Deferred<Int, any Error> { .succeeded(42) }
    }

    @Test func promise_compiles_whenSpelledOut() async throws {
        let plain = Promise<Int, Oops>()
        let stoppable = Promise<Int, Oops>(onCancel: { promise in promise.fail(.one) })
        let trailing = Promise<Int, any Error> { $0.succeed(0) }
        let deferred: Deferred<Int, Oops> = plain.deferred
        plain.report(ProgressUpdate(completed: 1, total: 2))
        #expect(plain.succeed(1))
        #expect(!plain.fail(.one))
        plain.succeed(2)
        plain.fail(.two)
        plain.resolve(.success(3))
        #expect(deferred.outcome == .success(1))
        #expect(!stoppable.isCancelled)
        stoppable.resolve(with: deferred)
        trailing.deferred.cancel()
        #expect(trailing.isCancelled)
        #expect(try await trailing.deferred.get() == 0)
    }

    @Test func deferred_compiles_whenSpelledOut() async throws {
        let outcome: Deferred<Int, Oops>.Outcome = .success(1)
        let given = Deferred(outcome)
        let succeeded = Deferred<Int, Oops>.succeeded(1)
        let failed: Deferred<Int, Oops> = .failed(.one)
        let never = Deferred<Int, Never>.never
        let run = Deferred<Int, Oops>.run(on: .background) { () throws(Oops) -> Int in throw .two }
        let inlineRun = Deferred<Int, any Error>.run(on: .inline) { 7 }
        #expect(never.outcome == nil)
        #expect(given.outcome == .success(1))
        await #expect(throws: Oops.two) { try await run.get() }
        #expect(try await inlineRun.get() == 7)
        do {
            _ = try await failed.get()
        } catch {
            let typed: Oops = error
            #expect(typed == .one)
        }
        #expect(waited(succeeded) == .success(1))
        let observation: Observation = never.upon { _ in }
        observation.cancel()
        never.onProgress { _ in }.cancel()
        never.onProgress(on: .main) { update in print(update.fraction as Any) }.cancel()
        never.cancel()
    }

    private func waited<S, F>(_ deferred: Deferred<S, F>) -> Deferred<S, F>.Outcome? {
        deferred.wait(timeout: .seconds(1))
    }

    @Test func transforms_compile_whenSpelledOut() async throws {
        let one = Deferred<Int, Oops>.succeeded(1)
        let two: Deferred<Int, Oops> = one.map { $0 + 1 }
        let text: Deferred<String, Oops> = one.map { (n) throws(Oops) in
            guard n > 1 else { throw .one }
            return "\(n)"
        }
        let next: Deferred<String, Oops> = one.flatMap { .succeeded("\($0)") }
        let other: Deferred<String, Oops> = one.flatMap { (n) throws(Oops) in
            guard n > 1 else { throw .two }
            return Deferred<String, Oops>.succeeded("\(n)")
        }
        let error: Deferred<Int, any Error> = one.mapError { $0 as any Error }
        let renamed: Deferred<Int, CycleError> = one.mapError { _ in CycleError() }
        let healed: Deferred<Int, Never> = one.flatMapError { _ in .succeeded(0) }
        let final: Deferred<Int, Oops> = one.finally { _ in }
        one.finally { _ in }
        let erased: Deferred<Int, any Error> = one.erased()
        #expect(two.outcome == .success(2))
        #expect(text.outcome == .failure(.one))
        #expect(next.outcome == .success("1"))
        #expect(other.outcome == .failure(.two))
        #expect(try await error.get() == 1)
        #expect(renamed.outcome == .success(1))
        #expect(await healed.get() == 1)
        #expect(final.outcome == .success(1))
        #expect(try await erased.get() == 1)
    }

    @Test func executors_compile_whenSpelledOut() async throws {
        let queue = DispatchQueue(label: "signatures")
        let operations = OperationQueue()
        let one = Deferred<Int, any Error>.succeeded(1)
        #expect(try await one.map(on: .inline) { $0 + 1 }.get() == 2)
        #expect(try await one.map(on: .queue(queue)) { $0 + 1 }.get() == 2)
        #expect(try await one.then(on: .operations(operations)) { $0 + 1 }.get() == 2)
        #expect(try await one.flatMap(on: .background) { .succeeded($0 + 1) }.get() == 2)
        #expect(try await one.then(on: Elsewhere()) { Deferred<Int, Oops>.succeeded($0 + 1) }.get() == 2)
        #expect(try await one.both(on: .background) { _ in 2 }.get() == 2)
        #expect(try await one.finally(on: .background) { _ in }.get() == 1)
        let mapped: Deferred<Int, Oops> = one.mapError(on: .background) { _ in .one }
        #expect(try await mapped.get() == 1)
        let healed: Deferred<Int, Never> = one.flatMapError(on: .background) { _ in .succeeded(1) }
        #expect(await healed.get() == 1)
        #expect(try await one.fail(on: .background) { _ in 0 }.get() == 1)
        one.upon(on: .main) { _ in }.cancel()
        _ = one.then(on: .main) { $0 + 1 }
    }

    @Test func classicChain_compiles_whenSpelledOut() async throws {
        let one = Deferred<Int, any Error>.succeeded(1)
        one.then { print($0) }
        let value: Deferred<String, any Error> = one.then { "\($0)" }
        let same: Deferred<String, any Error> = one.then { Deferred<String, any Error>.succeeded("\($0)") }
        let other: Deferred<String, any Error> = one.then { Deferred<String, Oops>.succeeded("\($0)") }
        #expect(try await value.get() == "1")
        #expect(try await same.get() == "1")
        #expect(try await other.get() == "1")

        let pair = one.then {
            "\($0)"
        } fail: { _ in
            "failed"
        }
        let pairSame = one.then {
            Deferred<String, any Error>.succeeded("\($0)")
        } fail: {
            Deferred<String, any Error>.failed($0)
        }
        let pairOther = one.then({ Deferred<String, Oops>.succeeded("\($0)") }, fail: { _ in .failed(.one) })
        #expect(try await pair.get() == "1")
        #expect(try await pairSame.get() == "1")
        #expect(try await pairOther.get() == "1")

        let failed = Deferred<Int, any Error>.failed(Oops.one)
        #expect(try await failed.fail { _ in 0 }.get() == 0)
        #expect(try await failed.fail { _ in Deferred<Int, any Error>.succeeded(2) }.get() == 2)
        #expect(try await failed.fail { _ in Deferred<Int, Oops>.succeeded(3) }.get() == 3)
        await #expect(throws: Oops.two) { try await failed.fail { _ in throw Oops.two }.get() }

        let both: Deferred<Bool, any Error> = one.both { outcome in
            if case .success = outcome { true } else { false }
        }
        #expect(try await both.get())
        #expect(try await one.both { _ in Deferred<Int, any Error>.succeeded(2) }.get() == 2)
        #expect(try await one.both { _ in Deferred<Int, Oops>.succeeded(2) }.get() == 2)

        let task = Deferred<Int, any Error> { try await one.get() }
        let urgent = Deferred<Int, any Error>(priority: .high) { 5 }
        #expect(try await task.get() == 1)
        #expect(try await urgent.get() == 5)
        #expect(try await one.timeout(.seconds(1)).get() == 1)
        #expect(try await one.timeout(.seconds(1), clock: SuspendingClock()).get() == 1)
        let retried = Deferred<Int, any Error>.retry(attempts: 3) { attempt in .succeeded(attempt) }
        #expect(try await retried.get() == 1)
        let picky = Deferred.retry(
            attempts: 3,
            delay: { .milliseconds($0) },
            clock: ContinuousClock(),
            if: { $0 is Oops },
            { attempt in attempt < 2 ? Deferred<Int, any Error>.failed(Oops.one) : .succeeded(attempt) }
        )
        #expect(try await picky.get() == 2)
    }

    @Test func lists_compile_whenSpelledOut() async throws {
        let a = Deferred<Int, any Error>.succeeded(1)
        let b = Deferred<String, any Error>.succeeded("b")
        let c = Deferred<Bool, any Error>.succeeded(true)
        let all: Deferred<[Int], any Error> = Deferred.all([a, a])
        #expect(try await all.get() == [1, 1])
        let settled: Deferred<[Deferred<Int, any Error>.Outcome], Never> = Deferred.settled([a])
        #expect(await settled.get().count == 1)
        let success: Deferred<(index: Int, value: Int), FailureGroup<any Error>> = Deferred.firstSuccess([a])
        #expect(try await success.get() == (index: 0, value: 1))
        let resolved: Deferred<Deferred<Int, any Error>, Never> = Deferred.firstResolved([a])
        #expect(await resolved.get() === a)
        let triple: Deferred<(Int, String, Bool), any Error> = DeferredKit.both(a, b, c)
        #expect(try await triple.get() == (1, "b", true))
        let pair = both(a, b)
        #expect(try await pair.get() == (1, "b"))
        let slice = Deferred.all([a, a, a].prefix(2))
        #expect(try await slice.get() == [1, 1])
    }

    @Test func queueAndSource_compile_whenSpelledOut() async throws {
        let queue = WorkQueue(concurrency: 2)
        let held = WorkQueue(concurrency: 1, suspended: true)
        #expect(held.isSuspended)
        held.isSuspended = false
        queue.concurrency = 3
        #expect(queue.concurrency == 3)
        let work: Deferred<Int, any Error> = queue.add(priority: 2) { .succeeded(1) }
        #expect(try await work.get() == 1)
        #expect(try await queue.add { Deferred<Int, any Error>.succeeded(2) }.get() == 2)
        #expect(try await Answer().start(on: queue).get() == 42)
        #expect(try await Answer().start(on: queue, priority: 1).get() == 42)
        let source: any DataSource<Int> = Answer()
        #expect(try await source.start().get() == 42)
        queue.cancelAll()
        await queue.drained()
    }

    @Test func smallTypes_compile_whenSpelledOut() {
        #expect(ProgressUpdate(completed: 1, total: 4).fraction == 0.25)
        #expect(ProgressUpdate(completed: 1, total: nil).fraction == nil)
        #expect(ProgressUpdate.fraction(0.1).fraction == 0.1)
        #expect(ProgressUpdate.fraction(2).fraction == 1)
        #expect(TimeoutError(after: .seconds(1)).after == .seconds(1))
        #expect(TimeoutError(after: .seconds(1)) == TimeoutError(after: .milliseconds(1000)))
        #expect(CycleError() == CycleError())
        #expect(FailureGroup<Oops>(failures: [.one, .two]).failures == [.one, .two])
    }
}
