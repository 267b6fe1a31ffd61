import DeferredKit
import Foundation
import Synchronization
import Testing

/// Races that once lost callbacks or touched freed memory, 100,000 times each.
@Suite(.serialized) struct MendedRaceTests {
    typealias Plain = Deferred<Int, any Error>

    /// A Deferred that pauses on another while somebody adds to it and lets it go: `add` gets it and a counter of
    /// calls, and gives back what is to be cancelled.
    private func pauseAgainstAdd(
        _ name: String, cancelling: Bool = false, _ add: @escaping @Sendable (Plain, Tally) -> (@Sendable () -> Void)?
    ) {
        duel(Rounds.named, name) { _ in
            let outer = Promise<Int, any Error>()
            let inner = Promise<Int, any Error>()
            let middle = Box(outer.deferred.flatMap { _ in inner.deferred })
            let before = Tally()
            let after = Tally()
            let first = middle.value.map { $0.map { before.note($0) } }
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

    @Test func mapAddedWhilePausing_runs() {
        pauseAgainstAdd("map") { deferred, tally in
            let link = deferred.map { tally.note($0) }
            return { link.cancel() }
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

    @Test func callbackAddedWhilePausing_runs() {
        pauseAgainstAdd("upon") { deferred, tally in
            deferred.upon { _ in tally.note(0) }
            return nil
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

    /// An executor that runs nothing and lets go of its jobs when it is told to.
    private final class Keeping: CallbackExecutor {
        let jobs = Journal<@Sendable () -> Void>()
        func submit(_ job: @escaping @Sendable () -> Void) { jobs.note(job) }
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
