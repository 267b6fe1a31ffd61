import DeferredKit
import Foundation
import Synchronization
import Testing

/// Races that once lost callbacks or touched freed memory, 100,000 times each.
@Suite(.serialized) struct MendedRaceTests {
    typealias Plain = Deferred<Int, any Error>

    /// A Deferred that pauses on another while a thread adds to it and releases it: `add` gets the Deferred and a
    /// counter of calls, and returns the Deferred to cancel.
    private func pauseAgainstAdd(
        _ name: String, cancelling: Bool = false, _ add: @escaping @Sendable (Plain, Tally) -> (@Sendable () -> Void)?
    ) {
        duel(Rounds.named, name) { round in
            let outer = Promise<Int, any Error>()
            let inner = Promise<Int, any Error>()
            let middle = Box(outer.deferred.flatMap { _ in inner.deferred })
            let before = Tally()
            let after = Tally()
            // Either a separate link, or a link that takes the outcome unchanged, as in a loop.
            let waiting = round / 2 % 2 == 0 ? middle.value : middle.value.map { Self.follow($0) }
            let first = waiting.map { $0.map { before.note($0) } }
            let cancel = Box<@Sendable () -> Void>(nil)
            return Duel(
                first: { outer.succeed(1) },
                second: {
                    if let deferred = middle.value.take() { cancel.value = add(deferred, after) }
                },
                verdict: {
                    if cancelling {
                        cancel.value?()
                        first?.cancel()
                        if !inner.isCancelled { return "cancellation did not arrive" }
                    }
                    inner.succeed(2)
                    let expected = cancelling ? 0 : 1
                    if before.count != expected { return "the link that was there ran \(before.count) times" }
                    if after.count != expected { return "what was added ran \(after.count) times" }
                    return nil
                }
            )
        }
    }

    private static func follow(_ deferred: Plain) -> Plain {
        Plain.succeeded(0).flatMap { _ in deferred }
    }

    /// The same with only a weak reference: the link steps aside, and is used after all.
    @Test func callbackAddedByAWeakReferenceWhilePausing_runs() {
        final class Weakly: @unchecked Sendable {
            // Unchecked: written before the threads meet.
            weak var deferred: Plain?
        }
        duel(Rounds.named) { round in
            let outer = Promise<Int, any Error>()
            let inner = Promise<Int, any Error>()
            let middle = Weakly()
            let (before, after, asked) = (Tally(), Tally(), Tally())
            do {
                let deferred = outer.deferred.flatMap { _ in inner.deferred }
                middle.deferred = deferred
                Self.follow(deferred).upon { _ in before.note(0) }
            }
            return Duel(
                first: { outer.succeed(1) },
                second: {
                    for _ in 0..<round % 3 {
                        if let deferred = middle.deferred {
                            asked.note(0)
                            deferred.upon { _ in after.note(0) }
                        }
                    }
                },
                verdict: {
                    inner.succeed(2)
                    if before.count != 1 { return "the link that was there ran \(before.count) times" }
                    return after.count == asked.count ? nil : "\(after.count) of \(asked.count) ran"
                }
            )
        }
    }

    @Test func cancelAgainstPause_reachesTheInnerOne() {
        duel(Rounds.named) { _ in
            let outer = Promise<Int, any Error>()
            let inner = Promise<Int, any Error>()
            let (tally, closure) = (Tally(), Tally())
            let link = outer.deferred.flatMap { value in
                closure.note(value)
                return inner.deferred
            }
            link.upon { _ in tally.note(0) }
            return Duel(
                first: { outer.succeed(1) },
                second: { link.cancel() },
                verdict: {
                    if !link.isCancelled { return "\(link.outcome as Any)" }
                    if tally.count != 1 { return "\(tally.count) calls" }
                    // A closure that ran before the cancellation has started work that no consumer wants.
                    return closure.count == 0 || inner.isCancelled ? nil : "the inner one was not cancelled"
                }
            )
        }
    }

    @Test func flatMapAddedWhilePausing_runs() {
        pauseAgainstAdd("flatMap") { deferred, tally in
            let link = deferred.flatMap { value -> Plain in
                tally.note(value)
                return .succeeded(value)
            }
            return { link.cancel() }
        }
    }

    @Test func listMadeWhilePausing_runs() {
        pauseAgainstAdd("all") { deferred, tally in
            let list = Deferred.all([deferred]).map { tally.note($0[0]) }
            return { list.cancel() }
        }
    }

    @Test func linkAddedWhilePausing_isCancelled() {
        pauseAgainstAdd("cancel", cancelling: true) { deferred, tally in
            let link = deferred.map { tally.note($0) }
            return { link.cancel() }
        }
    }

    @Test func cancelAgainstCancelAll_resolvesEverything() {
        duel(Rounds.named) { _ in
            let queue = WorkQueue(concurrency: 1, suspended: true)
            let works = (0..<8).map { _ in queue.add { Plain.succeeded(1) } }
            return Duel(
                first: { queue.cancelAll() },
                second: { for work in works { work.cancel() } },
                verdict: { works.contains { $0.error == nil } ? "not all are cancelled" : nil }
            )
        }
    }

    @Test func cancelAgainstDroppedJob_failsTheLink() {
        let population = Population()
        duel(Rounds.named) { round in
            let executor = Keeping()
            let promise = Box(Promise<Int, any Error>())
            let token = population.token()
            let link = promise.value?.deferred.map(on: executor) { value in withExtendedLifetime(token) { value } }
            let tally = Tally()
            link?.map { _ in withExtendedLifetime(token) {} }.upon { _ in tally.note(0) }
            promise.value?.succeed(1)
            promise.value = nil
            return Duel(
                first: { executor.jobs.clear() },
                second: { link?.cancel() },
                verdict: {
                    if link?.isCancelled != true { return "\(link?.outcome as Any)" }
                    return tally.count <= 1 ? nil : "\(tally.count) calls"
                }
            )
        }
        #expect(population.count == 0)
    }
}

/// An executor that runs nothing and lets go of its jobs when it is told to.
final class Keeping: CallbackExecutor {
    let jobs = Journal<@Sendable () -> Void>()
    func submit(_ job: @escaping @Sendable () -> Void) { jobs.note(job) }
}

/// Counts calls.
final class Tally: Sendable {
    private let calls = Atomic(0)
    var count: Int { calls.load(ordering: .relaxed) }

    @discardableResult
    func note(_ value: Int) -> Int {
        calls.add(1, ordering: .relaxed)
        return value
    }
}
