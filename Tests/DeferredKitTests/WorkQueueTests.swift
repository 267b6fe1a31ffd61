import DeferredKit
import Synchronization
import Testing

/// Limits, priorities, suspension, cancellation and draining.
@Suite struct WorkQueueTests {
    @Test func operations_startUpToTheLimit() {
        let journal = Journal<Int>()
        let queue = WorkQueue(concurrency: 2)
        let promises = (0..<4).map { _ in Promise<Int, any Error>() }
        let works = promises.indices.map { index in
            queue.add {
                journal.note(index)
                return promises[index].deferred
            }
        }
        #expect(journal.entries == [0, 1])
        promises[1].succeed(1)
        #expect(journal.entries == [0, 1, 2])
        promises[0].fail(Oops.one)
        #expect(journal.entries == [0, 1, 2, 3])
        promises[2].succeed(2)
        promises[3].succeed(3)
        #expect(works.map(\.value) == [nil, 1, 2, 3])
        #expect(works[0].error as? Oops == .one)
    }

    @Test(arguments: [0, -3]) func limitBelowOne_countsAsOne(limit: Int) {
        let journal = Journal<Int>()
        let queue = WorkQueue(concurrency: limit)
        #expect(queue.concurrency == 1)
        for index in 0..<2 {
            _ = queue.add { () -> Deferred<Int, any Error> in
                journal.note(index)
                return .never
            }
        }
        queue.concurrency = limit
        #expect(queue.concurrency == 1)
        #expect(journal.entries == [0])
    }

    @Test func higherPriority_goesFirst_andFirstComeFirstServedWithinOne() {
        let journal = Journal<String>()
        let queue = WorkQueue(concurrency: 1, suspended: true)
        for (name, priority) in [("a", 0), ("b", 5), ("c", -1), ("d", 5), ("e", 0), ("f", Int.max), ("g", Int.min)] {
            _ = queue.add(priority: priority) { () -> Deferred<Int, any Error> in
                journal.note(name)
                return .succeeded(0)
            }
        }
        #expect(journal.entries.isEmpty)
        queue.isSuspended = false
        #expect(journal.entries == ["f", "b", "d", "a", "e", "c", "g"])
    }

    @Test func suspension_startsNothing_andLetsTheRunningFinish() {
        let journal = Journal<String>()
        let queue = WorkQueue(concurrency: 1)
        let first = Promise<Int, any Error>()
        let running = queue.add { first.deferred }
        let waiting = queue.add { () -> Deferred<Int, any Error> in
            journal.note("second")
            return .succeeded(2)
        }
        queue.isSuspended = true
        #expect(queue.isSuspended)
        first.succeed(1)
        #expect(running.value == 1)
        #expect(journal.entries.isEmpty)
        queue.isSuspended = false
        #expect(waiting.value == 2)
    }

    @Test func raisingTheLimit_startsMore() {
        let journal = Journal<Int>()
        let queue = WorkQueue(concurrency: 1)
        for index in 0..<5 {
            _ = queue.add { () -> Deferred<Int, any Error> in
                journal.note(index)
                return .never
            }
        }
        queue.concurrency = 3
        #expect(journal.entries == [0, 1, 2])
        queue.cancelAll()
        #expect(journal.entries == [0, 1, 2])
    }

    @Test func place_staysTaken_untilAnOperationThatNeverResolvesIsCancelled() {
        let queue = WorkQueue(concurrency: 1)
        let lost = queue.add { Promise<Int, any Error>().deferred }
        let next = queue.add { Deferred<Int, any Error>.succeeded(1) }
        #expect(next.outcome == nil)
        lost.cancel()
        #expect(lost.isCancelled)
        #expect(next.value == 1)
        _ = queue.add { Deferred<Int, any Error>.never }
        queue.cancelAll()
        #expect(queue.add { Deferred<Int, any Error>.succeeded(2) }.value == 2)
    }

    @Test func waitingOperation_isTakenOut_whenCancelled() {
        let journal = Journal<Int>()
        let population = Population()
        let queue = WorkQueue(concurrency: 1, suspended: true)
        let works = (0..<3).map { index in
            queue.add { [token = population.token()] in
                withExtendedLifetime(token) { journal.note(index) }
                return Deferred<Int, any Error>.succeeded(index)
            }
        }
        works[1].map { $0 }.cancel()
        #expect(works[1].isCancelled)
        #expect(population.count == 2)
        queue.isSuspended = false
        #expect(journal.entries == [0, 2])
        #expect(population.count == 0)
    }

    @Test func runningOperation_isWithdrawnFrom_whenCancelled() {
        let queue = WorkQueue(concurrency: 1)
        let promise = Promise<Int, any Error>()
        let work = queue.add { promise.deferred }
        let next = queue.add { Deferred<Int, any Error>.succeeded(2) }
        work.cancel()
        #expect(promise.isCancelled)
        #expect(work.isCancelled)
        #expect(next.value == 2)
    }

    @Test func place_staysTaken_whileOthersKeepTheWorkGoing() {
        let queue = WorkQueue(concurrency: 1)
        let promise = Promise<Int, any Error>()
        let other = promise.deferred.map { $0 }
        let work = queue.add { promise.deferred }
        let next = queue.add { Deferred<Int, any Error>.succeeded(2) }
        work.cancel()
        #expect(work.isCancelled)
        #expect(next.outcome == nil)
        promise.succeed(1)
        #expect(other.value == 1)
        #expect(next.value == 2)
    }

    @Test func cancelledInItsOperation_cancelsWhatTheOperationReturns() {
        let queue = WorkQueue(concurrency: 1, suspended: true)
        let promise = Promise<Int, any Error>()
        let itself = Promise<Deferred<Int, any Error>, Never>()
        let work = queue.add {
            itself.deferred.value?.cancel()
            return promise.deferred
        }
        itself.succeed(work)
        queue.isSuspended = false
        #expect(work.isCancelled)
        #expect(promise.isCancelled)
    }

    @Test func typedOperation_isCancelled_whenItCancelsItself() {
        let queue = WorkQueue(concurrency: 1, suspended: true)
        let promise = Promise<Int, Oops> { $0.fail(.one) }
        let itself = Promise<Deferred<Int, Oops>, Never>()
        let work: Deferred<Int, Oops> = queue.add(cancelled: { .cancelled }) {
            itself.deferred.value?.cancel()
            return promise.deferred
        }
        itself.succeed(work)
        queue.isSuspended = false
        #expect(work.outcome == .failure(.one))
    }

    enum Loss: CaseIterable { case first, last, withinTheOperation }

    @Test(arguments: Loss.allCases) func place_isFree_whenALostTypedOperationIsCancelled(_ loss: Loss) {
        let queue = WorkQueue(concurrency: 1, suspended: true)
        let promise = Box(Promise<Int, Oops>())
        let itself = Box<Deferred<Int, Oops>>(nil)
        let work: Deferred<Int, Oops> = queue.add(cancelled: { .cancelled }) {
            let deferred = promise.value?.deferred ?? .never
            if loss == .withinTheOperation { itself.value?.cancel() }
            if loss != .last { promise.value = nil }
            return deferred
        }
        itself.value = work
        queue.isSuspended = false
        let next = queue.add { Deferred<Int, any Error>.succeeded(1) }
        if loss == .first { #expect(!next.isResolved) }
        work.cancel()
        promise.value = nil
        #expect(work.outcome == .failure(.cancelled))
        #expect(next.value == 1)
    }

    @Test func cancelAll_cancelsTheWaitingAndTheRunning_andLeavesTheQueueUsable() {
        let journal = Journal<Int>()
        let queue = WorkQueue(concurrency: 2)
        let promises = (0..<5).map { _ in Promise<Int, any Error>() }
        let works = promises.indices.map { index in
            queue.add {
                journal.note(index)
                return promises[index].deferred
            }
        }
        queue.cancelAll()
        #expect(works.allSatisfy { $0.isCancelled })
        #expect(journal.entries == [0, 1])
        #expect(queue.add { Deferred<Int, any Error>.succeeded(1) }.value == 1)
    }

    @Test func drained_returns_whenNothingWaitsOrRuns() async throws {
        let queue = WorkQueue(concurrency: 1)
        await queue.drained()
        let promises = (0..<3).map { _ in Promise<Int, any Error>() }
        let works = promises.map { promise in queue.add { promise.deferred } }
        let tasks = SerialTasks()
        let task = await tasks.start { await queue.drained() }
        promises[0].succeed(1)
        works[2].cancel()
        #expect(works[1].outcome == nil)
        promises[1].succeed(1)
        try await task.value
        #expect(works.allSatisfy { $0.outcome != nil })
    }

    @Test func drained_returns_whenTheLastThatWaitedIsCancelled() async throws {
        let queue = WorkQueue(concurrency: 1, suspended: true)
        let work = queue.add { Deferred<Int, any Error>.succeeded(1) }
        let task = await SerialTasks().start { await queue.drained() }
        work.cancel()
        try await task.value
        #expect(queue.isSuspended)
    }

    @Test func operationsOwnChains_resolveAtOnce_whenItIsStartedAtOnce() {
        let journal = Journal<Int?>()
        let work = WorkQueue(concurrency: 1).add {
            let link = Deferred<Int, any Error>.succeeded(1).map { $0 + 1 }
            journal.note(link.value)
            return link
        }
        #expect(journal.entries == [2])
        #expect(work.value == 2)
    }

    @Test func drained_returnsEarly_whenItsTaskIsCancelled() async throws {
        let queue = WorkQueue(concurrency: 1)
        let promise = Promise<Int, any Error>()
        let work = queue.add { promise.deferred }
        let task = await SerialTasks().start { await queue.drained() }
        task.cancel()
        try await task.value
        #expect(work.outcome == nil)
        promise.succeed(1)
        await queue.drained()
    }

    @Test func outcome_isThere_beforeThePlaceIsFree() {
        let journal = Journal<String>()
        let queue = WorkQueue(concurrency: 1)
        let promise = Promise<Int, any Error>()
        queue.add { promise.deferred }.upon { _ in journal.note("first resolved") }
        _ = queue.add { () -> Deferred<Int, any Error> in
            journal.note("second starts")
            return .succeeded(1)
        }
        promise.succeed(1)
        #expect(journal.entries == ["first resolved", "second starts"])
    }

    @Test func progress_ofAnOperation_isThatOfItsDeferred() {
        let journal = Journal<ProgressUpdate>()
        let queue = WorkQueue(concurrency: 1)
        let promise = Promise<Int, any Error>()
        queue.add { promise.deferred }.onProgress { journal.note($0) }
        promise.report(.fraction(0.5))
        #expect(journal.entries == [.fraction(0.5)])
    }

    @Test func queue_runsAMillionOperationsInBoundedStack() {
        let queue = WorkQueue(concurrency: 1, suspended: true)
        let count = Atomic(0)
        for _ in 0..<100_000 {
            _ = queue.add { () -> Deferred<Int, any Error> in
                count.add(1, ordering: .relaxed)
                return .succeeded(1)
            }
        }
        queue.isSuspended = false
        #expect(count.load(ordering: .relaxed) == 100_000)
    }

    @Test func cancelledInBulk_leaveNothingBehind() {
        let population = Population()
        let queue = WorkQueue(concurrency: 1, suspended: true)
        let works = (0..<1000).map { index in
            queue.add(priority: index % 3) { [token = population.token()] in
                withExtendedLifetime(token) { Deferred<Int, any Error>.succeeded(index) }
            }
        }
        for work in works.shuffled() { work.cancel() }
        #expect(population.count == 0)
        queue.isSuspended = false
        #expect(queue.add { Deferred<Int, any Error>.succeeded(1) }.value == 1)
    }

    @Test func higherPriority_goesFirst_afterMostWereCancelled() {
        let journal = Journal<Int>()
        let queue = WorkQueue(concurrency: 1, suspended: true)
        let works = (0..<1000).map { priority in
            queue.add(priority: priority) {
                journal.note(priority)
                return Deferred<Int, any Error>.succeeded(priority)
            }
        }
        for (priority, work) in works.enumerated() where priority % 100 != 0 { work.cancel() }
        queue.isSuspended = false
        #expect(journal.entries == stride(from: 900, through: 0, by: -100).map { $0 })
    }

    @Test func droppedQueue_releasesWhatWaited() {
        let population = Population()
        var queue: WorkQueue? = WorkQueue(concurrency: 1, suspended: true)
        let work = queue?.add { [token = population.token()] in
            withExtendedLifetime(token) { Deferred<Int, any Error>.succeeded(1) }
        }
        queue = nil
        #expect(population.count == 0)
        work?.cancel()
        #expect(work?.isCancelled == true)
    }

    private struct Answer: DataSource {
        let journal: Journal<String>
        func start() -> Deferred<String, any Error> {
            journal.note("start")
            return .succeeded("answer")
        }
    }

    @Test func dataSource_startsOnAQueue() {
        let journal = Journal<String>()
        let queue = WorkQueue(concurrency: 1, suspended: true)
        let deferred = Answer(journal: journal).start(on: queue, priority: 1)
        #expect(journal.entries.isEmpty)
        queue.isSuspended = false
        #expect(deferred.value == "answer")
    }

    @Test func typedOperation_failsAsItsClosureSays_whenItIsCancelledInLine() {
        let queue = WorkQueue(concurrency: 1, suspended: true)
        let journal = Journal<Int>()
        let work: Deferred<Int, Oops> = queue.add(cancelled: { .cancelled }) {
            journal.note(1)
            return .succeeded(1)
        }
        let other: Deferred<Int, Oops> = queue.add(cancelled: { .cancelled }) { .failed(.one) }
        work.cancel()
        #expect(work.outcome == .failure(.cancelled))
        queue.isSuspended = false
        #expect(other.outcome == .failure(.one))
        #expect(journal.entries.isEmpty)
    }
}
