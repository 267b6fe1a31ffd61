import DeferredKit
import Dispatch
import Testing

/// Which Deferreds a cancellation reaches, and how they end.
@Suite struct CancellationTests {
    // MARK: The topmost one

    @Test func cancel_leavesTheOutcomeToTheProducer_whenFailureIsTyped() {
        let journal = Journal<String>()
        let promise = noting(journal, failing: Oops.self)
        let link = promise.deferred.map { $0 + 1 }
        link.cancel()
        #expect(journal.entries == ["cancelled"])
        #expect(promise.isCancelled)
        #expect(link.outcome == nil)
        promise.fail(.cancelled)
        #expect(link.outcome == .failure(.cancelled))
    }

    @Test func cancel_takesTheProducersOutcome_whenOnCancelResolves() {
        let promise = Promise<Int, Oops> { $0.fail(.cancelled) }
        let link = promise.deferred.map { $0 + 1 }
        link.cancel()
        #expect(link.outcome == .failure(.cancelled))
        let valued = Promise<Int, any Error> { $0.succeed(7) }
        valued.deferred.cancel()
        #expect(valued.deferred.value == 7)
    }

    @Test func cancel_followsAnother_whenOnCancelBindsToIt() {
        let cleanup = Promise<Int, any Error>()
        let promise = Promise<Int, any Error> { $0.resolve(with: cleanup.deferred) }
        promise.deferred.cancel()
        #expect(promise.deferred.outcome == nil)
        #expect(!cleanup.isCancelled)
        cleanup.succeed(3)
        #expect(promise.deferred.value == 3)
    }

    @Test func cancel_mayBeHandled_whenItFlowsDown() {
        let promise = Promise<Int, any Error>()
        let last = promise.deferred.fail { _ in 5 }.then { $0 + 1 }
        last.cancel()
        #expect(last.value == 6)
    }

    @Test func cancel_passesThroughTypedLinks_whenTheTopCanFail() {
        let promise = Promise<Int, any Error>()
        let typed: Deferred<Int, Oops> = promise.deferred.mapError { $0 is CancellationError ? .cancelled : .one }
        let last = typed.map { $0 }.erased()
        last.cancel()
        #expect(last.error as? Oops == .cancelled)
    }

    @Test func onCancel_isCalledOnce_whoeverCancels() {
        let journal = Journal<String>()
        let promise = noting(journal, failing: Oops.self)
        let a = promise.deferred.map { $0 }
        a.cancel()
        a.cancel()
        promise.deferred.cancel()
        let b = promise.deferred.erased()
        b.cancel()
        #expect(journal.entries == ["cancelled"])
        #expect(b.outcome == nil)
        promise.fail(.one)
        #expect(b.error as? Oops == .one)
    }

    @Test func lateResolve_isIgnored_afterCancellation() {
        let promise = Promise<Int, any Error>()
        promise.deferred.cancel()
        #expect(!promise.succeed(1))
        promise.resolve(with: .succeeded(1))
        promise.report(.fraction(1))
        #expect(promise.deferred.isCancelled)
    }

    // MARK: Several consumers

    @Test func observers_holdNoInterest() {
        let journal = Journal<String>()
        let promise = noting(journal)
        promise.deferred.upon { _ in journal.note("upon") }
        promise.deferred.onProgress { _ in }
        let link = promise.deferred.map { $0 }
        link.cancel()
        #expect(journal.entries == ["cancelled", "upon"])
    }

    @Test func observation_neverStopsTheWork() {
        let promise = Promise<Int, any Error>()
        promise.deferred.upon { _ in }.cancel()
        promise.deferred.onProgress { _ in }.cancel()
        #expect(!promise.isCancelled)
    }

    @Test func typedConsumer_keepsWaitingWithoutInterest_whileOthersStay() {
        let journal = Journal<String>()
        let promise = noting(journal, failing: Oops.self)
        let first = promise.deferred.map { $0 }
        let second = promise.deferred.map { $0 }
        first.cancel()
        #expect(first.outcome == nil)
        #expect(journal.entries.isEmpty)
        second.cancel()
        #expect(journal.entries == ["cancelled"])
        promise.succeed(1)
        #expect(first.outcome == .success(1))
    }

    // MARK: get()

    @Test func get_throwsAtOnce_whenItsTaskIsCancelledWhileOthersStay() async {
        let promise = Promise<Int, any Error>()
        let link = promise.deferred.map { $0 }
        let task = await SerialTasks().start { try await promise.deferred.get() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(!promise.isCancelled)
        promise.succeed(1)
        #expect(link.value == 1)
    }

    @Test func get_cancelsTheWork_whenNobodyElseIsInterested() async {
        let journal = Journal<String>()
        let promise = noting(journal)
        let task = Task { try await promise.deferred.map { $0 }.get() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(journal.entries == ["cancelled"])
        #expect(promise.isCancelled)
    }

    @Test func get_throwsAtOnce_evenIfTheProducerStillGivesAValue() async {
        let promise = Promise<Int, any Error> { $0.succeed(1) }
        let task = Task { try await promise.deferred.get() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(promise.deferred.value == 1)
    }

    @Test func get_waitsForTheProducer_whenFailureIsTyped() async {
        let asked = Promise<Void, Never>()
        let promise = Promise<Int, Oops> { _ in asked.succeed(()) }
        let task = Task { try await promise.deferred.get() }
        task.cancel()
        await asked.deferred.get()
        promise.fail(.cancelled)
        await #expect(throws: Oops.cancelled) { try await task.value }
    }

    @Test func get_holdsAnInterest_whileItWaits() async throws {
        let promise = Promise<Int, any Error>()
        let task = await SerialTasks().start { try await promise.deferred.get() }
        let link = promise.deferred.map { $0 }
        link.cancel()
        #expect(link.isCancelled)
        #expect(!promise.isCancelled)
        promise.succeed(4)
        #expect(try await task.value == 4)
    }

    @Test func get_losesItsInterest_whenItsTaskIsCancelledAndFailureIsTyped() async throws {
        let promise = Promise<Int, Oops>()
        let link = promise.deferred.map { $0 }
        let tasks = SerialTasks()
        let task = await tasks.start { try await promise.deferred.get() }
        task.cancel()
        #expect(!promise.isCancelled)
        link.cancel()
        #expect(promise.isCancelled)
        promise.succeed(1)
        #expect(try await task.value == 1)
    }

    @Test func get_throwsAtOnce_whenFailureIsCancellationError() async {
        let promise = Promise<Int, CancellationError>()
        let task = await SerialTasks().start { try await promise.deferred.get() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(promise.isCancelled)
        #expect(promise.deferred.outcome == nil)
    }

    @Test func get_givesTheValue_whenItIsThereThoughTheTaskIsCancelled() async throws {
        let deferred = Deferred<Int, any Error>.succeeded(1)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await deferred.get()
        }
        #expect(try await task.value == 1)
    }
}
