import DeferredKit
import Synchronization
import Testing

/// Timeouts, retries and tasks, with a clock that stands still.
@Suite struct TimingTests {
    private let clock = ManualClock()

    // MARK: timeout

    @Test func timeout_failsAndWithdraws_whenItFires() async {
        let promise = Promise<Int, any Error>()
        let limited = promise.deferred.timeout(.seconds(5), clock: clock)
        await clock.slept(1)
        clock.advance(by: .seconds(4))
        #expect(limited.outcome == nil)
        clock.advance(by: .seconds(1))
        await #expect(throws: TimeoutError(after: .seconds(5))) { try await limited.get() }
        #expect(promise.isCancelled)
    }

    @Test func timeout_passesTheOutcomeOnAndStopsItsTimer_whenItComesInTime() async throws {
        let promise = Promise<Int, any Error>()
        let limited = promise.deferred.timeout(.seconds(5), clock: clock)
        await clock.slept(1)
        promise.succeed(1)
        #expect(limited.value == 1)
        #expect(clock.sleeperCount == 0)
        let failed = Deferred<Int, any Error>.failed(Oops.one).timeout(.seconds(5), clock: clock)
        #expect(failed.error as? Oops == .one)
    }

    @Test func timeout_leavesTheWorkAlone_whenOthersWantIt() async {
        let promise = Promise<Int, any Error>()
        let other = promise.deferred.map { $0 }
        let limited = promise.deferred.timeout(.seconds(5), clock: clock)
        await clock.slept(1)
        clock.advance(by: .seconds(5))
        await #expect(throws: TimeoutError.self) { try await limited.get() }
        #expect(!promise.isCancelled)
        promise.succeed(2)
        #expect(other.value == 2)
    }

    @Test func timeout_isCancelledAsALink() async {
        let promise = Promise<Int, any Error>()
        let limited = promise.deferred.timeout(.seconds(5), clock: clock)
        await clock.slept(1)
        limited.cancel()
        #expect(limited.isCancelled)
        #expect(promise.isCancelled)
        #expect(clock.sleeperCount == 0)
    }

    @Test func timeout_keepsItsDeferredUntilItFires() async {
        let journal = Journal<String>()
        let done = Promise<Void, Never>()
        Promise<Int, any Error>().deferred.timeout(.seconds(5), clock: clock).upon { outcome in
            journal.note("\(outcome)")
            done.succeed(())
        }
        await clock.slept(1)
        clock.advance(by: .seconds(5))
        await done.deferred.get()
        #expect(journal.entries.count == 1)
        #expect(journal.entries.first?.contains("no outcome within") == true)
    }

    @Test func typedTimeout_failsAsItsClosureSays_andWithdraws() async {
        let promise = Promise<Int, Oops>()
        let limited = promise.deferred.timeout(.seconds(5), clock: clock) { _ in .two }
        await clock.slept(1)
        clock.advance(by: .seconds(5))
        await #expect(throws: Oops.two) { try await limited.get() }
        #expect(promise.isCancelled)
        let inTime = Deferred<Int, Oops>.succeeded(1).timeout(.seconds(5), clock: clock) { _ in .two }
        #expect(inTime.outcome == .success(1))
    }

    @Test func sleeps_areACenturyAtMost() async {
        let endless = Duration.seconds(Int64.max)
        let promise = Promise<Int, any Error>()
        let all = [
            promise.deferred.timeout(endless, clock: clock), .succeeded(1).delay(endless, clock: clock),
            .retry(attempts: 2, delay: { _ in endless }, clock: clock) { _ in .failed(Oops.one) },
        ]
        await clock.slept(3)
        #expect(clock.requests == Array(repeating: .seconds(3_155_760_000), count: 3))
        for deferred in all { deferred.cancel() }
    }

    // MARK: delay

    @Test func delay_passesTheOutcomeOnLater() async throws {
        let promise = Promise<Int, Oops>()
        let later = promise.deferred.delay(.seconds(5), clock: clock)
        promise.fail(.one)
        await clock.slept(1)
        #expect(!later.isResolved)
        clock.advance(by: .seconds(5))
        await #expect(throws: Oops.one) { try await later.get() }
        #expect(Deferred<Int, Oops>.succeeded(1).delay(.zero, clock: clock).outcome == .success(1))
    }

    @Test func delay_endsAtOnce_whenItIsCancelled() async {
        let later = Deferred<Int, any Error>.succeeded(1).delay(.seconds(5), clock: clock)
        let typed = Deferred<Int, Oops>.succeeded(1).delay(.seconds(5), clock: clock)
        await clock.slept(2)
        later.cancel()
        #expect(later.isCancelled)
        typed.cancel()
        #expect(await (try? typed.get()) == 1)
        #expect(clock.sleeperCount == 0)
        let promise = Promise<Int, any Error>()
        promise.deferred.delay(.seconds(5), clock: clock).cancel()
        #expect(promise.isCancelled)
    }

    @Test func delay_failsAsCancelled_whenItsFailureIsThatError() async {
        let later = Deferred<Int, CancellationError>.succeeded(1).delay(.seconds(5), clock: clock)
        await clock.slept(1)
        later.cancel()
        await #expect(throws: CancellationError.self) { try await later.get() }
    }

    // MARK: retry

    @Test func typedRetry_sleepsAndGivesTheLastFailure() async {
        let journal = Journal<Int>()
        let last = Deferred<Int, Oops>.retry(
            attempts: 3, delay: { .seconds($0) }, clock: clock, if: { $0 == .one }
        ) { attempt in
            journal.note(attempt)
            return .failed(attempt < 2 ? .one : .two)
        }
        await clock.slept(1)
        clock.advance(by: .seconds(1))
        await #expect(throws: Oops.two) { try await last.get() }
        #expect(journal.entries == [1, 2])
    }

    @Test func typedRetry_givesTheFailureBefore_whenItsDelayIsCancelled() async {
        let last = Deferred<Int, Oops>.retry(attempts: 3, delay: { _ in .seconds(1) }, clock: clock) { _ in
            .failed(.one)
        }
        await clock.slept(1)
        last.cancel()
        await #expect(throws: Oops.one) { try await last.get() }
        #expect(clock.sleeperCount == 0)
    }

    @Test func retry_callsTheOperationUntilItSucceeds() async throws {
        let journal = Journal<Int>()
        let last = Deferred<String, any Error>.retry(attempts: 5) { attempt in
            journal.note(attempt)
            return attempt < 3 ? .failed(Oops.one) : .succeeded("after \(attempt)")
        }
        #expect(try await last.get() == "after 3")
        #expect(journal.entries == [1, 2, 3])
    }

    @Test func retry_givesTheLastFailure_whenAttemptsAreUsedUp() {
        let journal = Journal<Int>()
        let last = Deferred<Int, any Error>.retry(attempts: 3) { attempt in
            journal.note(attempt)
            return .failed(attempt == 3 ? Oops.two : Oops.one)
        }
        #expect(last.error as? Oops == .two)
        #expect(journal.entries == [1, 2, 3])
    }

    @Test(arguments: [1, 0, -5]) func retry_callsAtLeastOnce(attempts: Int) {
        let journal = Journal<Int>()
        let last = Deferred<Int, any Error>.retry(attempts: attempts) { attempt in
            journal.note(attempt)
            return .failed(Oops.one)
        }
        #expect(last.error as? Oops == .one)
        #expect(journal.entries == [1])
    }

    @Test func retry_sleepsAfterEachFailedAttempt() async throws {
        let journal = Journal<Int>()
        let last = Deferred<Int, any Error>.retry(attempts: 3, delay: { .seconds($0 * 10) }, clock: clock) { attempt in
            journal.note(attempt)
            return attempt < 3 ? .failed(Oops.one) : .succeeded(attempt)
        }
        #expect(journal.entries == [1])
        await clock.slept(1)
        clock.advance(by: .seconds(10))
        await clock.slept(2)
        #expect(journal.entries == [1, 2])
        clock.advance(by: .seconds(20))
        #expect(try await last.get() == 3)
        #expect(clock.requests == [.seconds(10), .seconds(20)])
    }

    @Test func retry_stops_whenTheFailureIsNotWorthIt() {
        let journal = Journal<Int>()
        let last = Deferred<Int, any Error>.retry(attempts: 5, if: { $0 as? Oops == .one }) { attempt in
            journal.note(attempt)
            return .failed(attempt == 1 ? Oops.one : Oops.two)
        }
        #expect(last.error as? Oops == .two)
        #expect(journal.entries == [1, 2])
    }

    @Test func retry_neverRetriesCancellation() {
        let journal = Journal<Int>()
        let last = Deferred<Int, any Error>.retry(attempts: 5) { attempt in
            journal.note(attempt)
            return .failed(CancellationError())
        }
        #expect(last.isCancelled)
        #expect(journal.entries == [1])
    }

    @Test func retry_cancelsTheAttemptItIsIn() {
        let promise = Promise<Int, any Error>()
        let last = Deferred<Int, any Error>.retry(attempts: 5) { _ in promise.deferred }
        last.cancel()
        #expect(promise.isCancelled)
        #expect(last.isCancelled)
    }

    @Test func retry_cancelsTheDelayItIsIn() async {
        let journal = Journal<Int>()
        let last = Deferred<Int, any Error>.retry(attempts: 5, delay: { _ in .seconds(10) }, clock: clock) { attempt in
            journal.note(attempt)
            return .failed(Oops.one)
        }
        await clock.slept(1)
        last.cancel()
        #expect(last.isCancelled)
        #expect(clock.sleeperCount == 0)
        #expect(journal.entries == [1])
    }

    // MARK: Tasks

    @Test func task_givesItsValueOrFailure() async {
        let value = Deferred<Int, any Error> { 1 }
        let failure = Deferred<Int, any Error> { throw Oops.one }
        #expect((try? await value.get()) == 1)
        await #expect(throws: Oops.one) { try await failure.get() }
    }

    @Test func task_isCancelled_withItsDeferred() async {
        let begun = Promise<Void, Never>()
        let ended = Promise<Bool, Never>()
        let deferred = Deferred<Int, any Error> { [clock] in
            begun.succeed(())
            defer { ended.succeed(Task.isCancelled) }
            try await clock.sleep(for: .seconds(1000))
            return 1
        }
        await begun.deferred.get()
        deferred.map { $0 }.cancel()
        #expect(deferred.isCancelled)
        #expect(await ended.deferred.get())
    }

    @Test func task_mayStillGiveAValue_butTooLate() async {
        let begun = Promise<Void, Never>()
        let mayEnd = Promise<Void, Never>()
        let ended = Promise<Void, Never>()
        let deferred = Deferred<Int, any Error> {
            begun.succeed(())
            await mayEnd.deferred.get()
            defer { ended.succeed(()) }
            return 1
        }
        await begun.deferred.get()
        deferred.cancel()
        mayEnd.succeed(())
        await ended.deferred.get()
        #expect(deferred.isCancelled)
    }

    @Test func task_hasItsPriority() async throws {
        let priority = Deferred<TaskPriority, any Error>(priority: .high) { Task.basePriority ?? .low }
        #expect(try await priority.get() == .high)
    }
}
