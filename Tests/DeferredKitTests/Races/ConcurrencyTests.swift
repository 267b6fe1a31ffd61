import DeferredKit
import Dispatch
import Foundation
import Synchronization
import Testing

/// Everything from several threads at once. Also run with the thread sanitizer.
@Suite(.serialized) struct ConcurrencyTests {
    static let rounds = 1000

    @Test func callbacksAddedWhileResolving_runOnceAndInOrder() {
        for _ in 0..<Self.rounds {
            let promise = Promise<Int, any Error>()
            let journal = Journal<Int>()
            race(3) { index in
                if index == 2 {
                    promise.succeed(0)
                } else {
                    for step in 0..<50 { promise.deferred.upon { _ in journal.note(index * 1000 + step) } }
                }
            }
            let entries = journal.entries
            #expect(entries.filter { $0 < 1000 } == Array(0..<50))
            #expect(entries.filter { $0 >= 1000 } == Array(1000..<1050))
        }
    }

    @Test func consumersCancelledTogether_cancelTheTopOnce() {
        for _ in 0..<Self.rounds {
            let cancels = Atomic(0)
            let promise = Promise<Int, any Error> { _ in cancels.add(1, ordering: .relaxed) }
            let links = (0..<4).map { _ in promise.deferred.map { $0 }.map { $0 } }
            race(4) { links[$0].cancel() }
            #expect(cancels.load(ordering: .relaxed) == 1)
            #expect(links.allSatisfy { $0.isCancelled })
            #expect(promise.isCancelled)
        }
    }

    @Test func cancelAgainstExecutor_endsEitherWay_whenNobodyElseHoldsTheUpstream() {
        let queue = DispatchQueue(label: "executor")
        for _ in 0..<2000 {
            queue.suspend()
            let link = Deferred<Int, any Error>.succeeded(1).map(on: .queue(queue)) { $0 }
            race(3) { index in
                if index == 0 { queue.resume() } else { link.cancel() }
            }
            queue.sync {}
            #expect(link.value == 1 || link.isCancelled)
        }
    }

    @Test func observationAgainstResolve_runsAtMostOnce_andReleasesItsClosure() {
        let population = Population()
        for _ in 0..<Self.rounds {
            let promise = Promise<Int, any Error>()
            let calls = Atomic(0)
            let observation = promise.deferred.upon { [token = population.token()] _ in
                withExtendedLifetime(token) { _ = calls.add(1, ordering: .relaxed) }
            }
            race(3) { index in
                if index == 0 { promise.succeed(1) } else { observation.cancel() }
            }
            #expect(calls.load(ordering: .relaxed) <= 1)
            #expect(population.count == 0)
        }
    }

    @Test func listMembers_resolveOnSeveralThreads() {
        for _ in 0..<Self.rounds {
            let promises = (0..<8).map { _ in Promise<Int, any Error>() }
            let members = promises.map(\.deferred)
            let all = Deferred.all(members)
            let settled = Deferred.settled(members)
            let success = Deferred.firstSuccess(members)
            let first = Deferred.firstResolved(members)
            let pair = both(members[0], members[7])
            race(4) { index in
                promises[index * 2].succeed(index * 2)
                promises[index * 2 + 1].succeed(index * 2 + 1)
            }
            #expect(all.value == Array(0..<8))
            #expect(settled.value?.count == 8)
            #expect(success.value.map { $0.index == $0.value } == true)
            #expect(first.value?.outcome != nil)
            #expect(pair.value?.1 == 7)
        }
    }

    @Test func listAgainstCancelAndFailure_resolvesOnce() {
        for _ in 0..<Self.rounds {
            let promises = (0..<4).map { _ in Promise<Int, any Error>() }
            let list = Deferred.all(promises.map(\.deferred))
            let calls = Atomic(0)
            list.upon { _ in calls.add(1, ordering: .relaxed) }
            race(4) { index in
                switch index {
                case 0: list.cancel()
                case 1: promises[1].fail(Oops.one)
                default: promises[index].succeed(index)
                }
            }
            #expect(list.error != nil)
            #expect(calls.load(ordering: .relaxed) == 1)
            #expect(promises.allSatisfy { $0.deferred.outcome != nil })
        }
    }

    @Test func listsMadeWhileMembersFail_withdrawFromTheRest() {
        for round in 0..<Self.rounds / 5 {
            let failing = Promise<Int, any Error>()
            let others = (0..<500).map { _ in Promise<Int, any Error>() }
            let list = Mutable<Deferred<[Int], any Error>>(nil)
            race(2) { index in
                if index == 0 {
                    for _ in 0..<round { sched_yield() }
                    failing.fail(Oops.one)
                } else {
                    list.value = Deferred.all([failing.deferred] + others.map(\.deferred))
                }
            }
            #expect(list.value?.error as? Oops == .one)
            #expect(others.allSatisfy { $0.isCancelled })
        }
    }

    @Test func progress_neverFallsAndNeverFollowsTheOutcome() {
        for _ in 0..<Self.rounds / 3 {
            let promises = (0..<3).map { _ in Promise<Int, any Error>() }
            let list = Deferred.all(promises.map(\.deferred))
            let journal = Journal<Int64>()
            let isOver = Atomic(false)
            list.onProgress { update in
                let isLate = isOver.load(ordering: .sequentiallyConsistent)
                #expect(!isLate)
                journal.note(update.completed)
            }
            list.upon { _ in isOver.store(true, ordering: .sequentiallyConsistent) }
            race(3) { index in
                for step in 1...50 { promises[index].report(ProgressUpdate(completed: Int64(step), total: 50)) }
                promises[index].succeed(index)
            }
            #expect(journal.entries == journal.entries.sorted())
            #expect(Set(journal.entries).count == journal.entries.count)
            #expect(list.value == [0, 1, 2])
        }
    }

    @Test func bindingsToEachOther_neverHang() {
        for _ in 0..<Self.rounds {
            let promises = (0..<3).map { _ in Promise<Int, any Error>() }
            race(3) { index in promises[index].resolve(with: promises[(index + 1) % 3].deferred.map { $0 }) }
            #expect(promises.allSatisfy { $0.deferred.error is CycleError })
        }
    }

    @Test func loopAgainstCancel_endsEitherWay() {
        for _ in 0..<Self.rounds / 3 {
            @Sendable func round(_ n: Int) -> Deferred<Int, any Error> {
                Deferred.succeeded(n).flatMap { $0 == 300 ? .succeeded($0) : round($0 + 1) }
            }
            let start = Promise<Int, any Error>()
            let last = start.deferred.flatMap { round($0) }.map { $0 }
            race(2) { index in
                if index == 0 { start.succeed(0) } else { last.cancel() }
            }
            #expect(last.value == 300 || last.isCancelled)
        }
    }

    @Test func loopOnSeveralThreads_endsWithItsValue() async throws {
        @Sendable func round(_ n: Int) -> Deferred<Int, any Error> {
            Deferred.run(on: .background) { n }.flatMap(on: .background) { $0 == 500 ? .succeeded($0) : round($0 + 1) }
        }
        let loops = (0..<4).map { _ in round(0) }
        #expect(try await Deferred.all(loops).get() == [500, 500, 500, 500])
        loops[0].cancel()
    }

    @Test func awaitingTasks_endEitherWay_whenCancelledWhileResolving() async {
        for _ in 0..<Self.rounds {
            let promise = Promise<Int, any Error>()
            let tasks = (0..<3).map { _ in Task { try await promise.deferred.get() } }
            let canceller = Task { tasks[0].cancel() }
            let resolver = Task { promise.succeed(1) }
            for task in tasks {
                switch await task.result {
                case .success(let value): #expect(value == 1)
                case .failure(let error): #expect(error is CancellationError)
                }
            }
            await canceller.value
            _ = await resolver.value
        }
    }

    @Test func blockedThreads_areWoken() {
        for _ in 0..<Self.rounds / 3 {
            let promise = Promise<Int, Oops>()
            race(4) { index in
                if index == 0 {
                    promise.succeed(1)
                } else {
                    #expect(promise.deferred.wait(timeout: .seconds(60)) == .success(1))
                }
            }
        }
    }

    @Test func queue_keepsItsLimit_fromManyThreads() async {
        let queue = WorkQueue(concurrency: 3)
        let running = Atomic(0)
        let most = Atomic(0)
        let done = Atomic(0)
        race(4) { index in
            for step in 0..<200 {
                _ = queue.add(priority: step % 3) {
                    let now = running.add(1, ordering: .relaxed).newValue
                    most.max(now, ordering: .relaxed)
                    return Deferred<Int, any Error>.run(on: .background) {
                        running.subtract(1, ordering: .relaxed)
                        done.add(1, ordering: .relaxed)
                        return step
                    }
                }
            }
        }
        await queue.drained()
        #expect(most.load(ordering: .relaxed) <= 3)
        #expect(done.load(ordering: .relaxed) == 800)
    }

    @Test func queueAgainstCancelAll_resolvesEverything() async {
        for _ in 0..<Self.rounds / 10 {
            let queue = WorkQueue(concurrency: 2)
            let works = (0..<40).map { step in
                queue.add { Deferred<Int, any Error>.run(on: .background) { step } }
            }
            race(3) { index in
                switch index {
                case 0: queue.cancelAll()
                case 1: for work in works { work.cancel() }
                default:
                    queue.isSuspended.toggle()
                    queue.concurrency = 5
                    queue.isSuspended.toggle()
                }
            }
            await queue.drained()
            #expect(works.allSatisfy { $0.outcome != nil })
        }
    }

    @Test func callbacksOfResolvedDeferreds_areReleased_onEveryThread() {
        let population = Population()
        race(3) { index in
            for _ in 0..<200 {
                if index == 0 {
                    let token = population.token()
                    Deferred<Int, any Error>.failed(Oops.one).upon { _ in withExtendedLifetime(token) {} }
                } else {
                    Deferred<Int, any Error>.succeeded(1).then { $0 }.upon { _ in }
                }
            }
        }
        #expect(population.count == 0)
    }
}

/// A value that one thread changes and others read only after they have met it.
private final class Mutable<Value>: @unchecked Sendable {
    // Unchecked: see above.
    var value: Value?
    init(_ value: Value?) { self.value = value }
}
