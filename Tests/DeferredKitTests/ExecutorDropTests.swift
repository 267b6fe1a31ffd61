import DeferredKit
import Testing

/// A job that an executor drops has the same effect as a dropped Deferred.
@Suite struct ExecutorDropTests {
    private struct Dropping: CallbackExecutor {
        func submit(_ job: @escaping @Sendable () -> Void) {}
    }

    private let population = Population()

    @Test func link_isCancelled_afterItsJobWasDropped_andItsUpstreamIsGone() {
        let link = Deferred<Int, any Error>.succeeded(1).map(on: Dropping()) { [token = population.token()] value in
            withExtendedLifetime(token) { value }
        }
        #expect(population.count == 0)
        #expect(link.outcome == nil)
        let below = link.map { $0 }
        below.cancel()
        #expect(below.isCancelled)
        link.cancel()
        #expect(link.isCancelled)
    }

    @Test func whatWaits_isReleased_whenTheJobIsDropped() {
        let promise = Promise<Int, any Error>()
        let link = promise.deferred.map(on: Dropping()) { $0 }
        let token = population.token()
        link.upon { [token] _ in withExtendedLifetime(token) {} }
        let below = link.map { [token] value in withExtendedLifetime(token) { value } }
        link.onProgress { [token = population.token()] _ in withExtendedLifetime(token) {} }
        #expect(population.count == 2)
        promise.succeed(1)
        #expect(population.count == 1)
        withExtendedLifetime(token) {}
        below.cancel()
        #expect(below.isCancelled)
    }

    @Test func run_isAsIfDropped_whenItsJobIs() {
        let run = Deferred<Int, Oops>.run(on: Dropping()) { [token = population.token()] in
            withExtendedLifetime(token) { 1 }
        }
        #expect(population.count == 0)
        let below = run.erased()
        below.cancel()
        #expect(below.isCancelled)
    }

    @Test func callback_isReleased_whenItsJobIsDropped() {
        let observation = Deferred<Int, any Error>.succeeded(1).upon(on: Dropping()) { [token = population.token()] _ in
            withExtendedLifetime(token) {}
        }
        #expect(population.count == 0)
        observation.cancel()
    }

    @Test func progressCallback_goesOn_afterAJobWasDropped() {
        let executor = Keeping()
        let promise = Promise<Int, any Error>()
        let journal = Journal<Int64>()
        promise.deferred.onProgress(on: executor) { journal.note($0.completed) }
        promise.report(ProgressUpdate(completed: 1, total: nil))
        executor.jobs.clear()
        promise.report(ProgressUpdate(completed: 2, total: nil))
        for job in executor.jobs.entries { job() }
        #expect(journal.entries == [2])
    }

    @Test func typedLink_failsWhatWaits_whenItWasCancelledBeforeItsJobIsDropped() {
        let executor = Keeping()
        let link = Deferred<Int, Oops>.succeeded(1).map(on: executor) { $0 }
        let below = link.erased()
        below.cancel()
        #expect(below.outcome == nil)
        executor.jobs.clear()
        #expect(below.isCancelled)
    }

    @Test func awaitingTask_throws_whenItIsCancelledAfterTheJobWasDropped() async {
        let link = Deferred<Int, any Error>.succeeded(1).map(on: Dropping()) { $0 }
        let task = await SerialTasks().start { try await link.get() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func awaitingTask_throws_whenItIsCancelledAndTheJobIsDroppedAfterwards() async {
        let executor = Keeping()
        let promise = Promise<Int, any Error>()
        let link = promise.deferred.map(on: executor) { $0 }
        let task = await SerialTasks().start { try await link.get() }
        promise.succeed(1)
        executor.jobs.clear()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func job_runsOnce_whenItsExecutorRunsItTwice() {
        struct Twice: CallbackExecutor {
            func submit(_ job: @escaping @Sendable () -> Void) {
                job()
                job()
            }
        }
        let journal = Journal<Int>()
        let link = Deferred<Int, any Error>.succeeded(1).map(on: Twice()) { value in
            journal.note(value)
            return value
        }
        #expect(link.value == 1)
        #expect(journal.entries == [1])
    }
}
