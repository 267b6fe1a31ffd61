import DeferredKit
import Dispatch
import Synchronization
import Testing

/// Everything at once, at random, on several threads: it all comes to an end, and nothing is left over.
@Suite(.serialized) struct ChaosTests {
    typealias Plain = Deferred<Int, any Error>
    typealias Typed = Deferred<Int, Oops>

    @Test(arguments: 1...20) func everything_ends_andIsReleased_whateverHappened(seed: UInt64) async {
        let population = Population()
        await Self.run(seed, population)
        #expect(population.count == 0)
    }

    private static func run(_ seed: UInt64, _ population: Population) async {
        let stage = Stage(population)
        race(4) { index in
            var dice = Dice(seed &* 7919 &+ UInt64(index) &* 104_729)
            for _ in 0..<500 { stage.step(&dice) }
        }
        stage.work.cancelAll()
        for promise in stage.typedPromises.entries { promise.fail(.cancelled) }
        for deferred in stage.plain.entries { deferred.cancel() }
        // Jobs handed to the queue before, and the jobs that these hand to it.
        for deferred in stage.plain.entries { _ = try? await deferred.get() }
        for task in stage.tasks.entries { await task.value }
        await stage.work.drained()
        // Twice: a job is released after it ran, possibly while the next one runs.
        stage.queue.sync {}
        stage.queue.sync {}
    }

    /// Numbers that are the same in every run.
    private struct Dice {
        private var state: UInt64

        init(_ seed: UInt64) { state = seed &+ 88_172_645_463_325_252 }

        mutating func roll(_ sides: Int) -> Int {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return Int(state % UInt64(sides))
        }
    }

    /// The Deferreds made so far, shared by all threads.
    private final class Stage: Sendable {
        let plain = Journal<Plain>()
        let typed = Journal<Typed>()
        let promises = Journal<Promise<Int, any Error>>()
        let typedPromises = Journal<Promise<Int, Oops>>()
        let tasks = Journal<Task<Void, Never>>()
        let work = WorkQueue(concurrency: 3)
        let queue = DispatchQueue(label: "chaos")
        let population: Population

        init(_ population: Population) {
            self.population = population
            plain.note(.succeeded(0))
            typed.note(.succeeded(0))
            promises.note(Promise())
            typedPromises.note(Promise())
        }

        /// One of the latest.
        private func pick<T>(_ journal: Journal<T>, _ dice: inout Dice) -> T {
            let entries = journal.entries
            return entries[entries.count - 1 - dice.roll(min(entries.count, 40))]
        }

        func step(_ dice: inout Dice) {
            let token = population.token()
            let use: @Sendable () -> Void = { withExtendedLifetime(token) {} }
            let (one, other) = (pick(plain, &dice), pick(plain, &dice))
            switch dice.roll(30) {
            case 0, 1, 2: make(answering: dice.roll(2) == 0, use)
            case 3: makeTyped(use)
            case 4:
                plain.note(
                    one.map {
                        use(); return $0 &+ 1
                    })
            case 5:
                plain.note(
                    one.then {
                        use(); if $0 % 3 == 0 { throw Oops.one } else { return $0 }
                    })
            case 6, 7:
                plain.note(
                    one.flatMap { _ in
                        use(); return other
                    })
            case 8:
                plain.note(
                    one.fail { _ in
                        use(); return other
                    })
            case 9:
                plain.note(
                    one.both { _ in
                        use(); return other
                    })
            case 10: plain.note(one.finally { _ in use() })
            case 11:
                plain.note(
                    one.map(on: .queue(queue)) {
                        use(); return $0
                    })
            case 12:
                plain.note(
                    one.flatMap(on: .queue(queue)) { _ in
                        use(); return other
                    })
            case 13:
                typed.note(
                    pick(typed, &dice).map {
                        use(); return $0
                    })
            case 14: plain.note(pick(typed, &dice).erased())
            case 15: plain.note(Deferred.all([one, other, one]).map { $0[0] })
            case 16: plain.note(Deferred.settled([one, other]).erased().map(\.count))
            case 17: plain.note(Deferred.firstSuccess([one, other]).erased().map(\.value))
            case 18: plain.note(Deferred.firstResolved([one, other]).erased().flatMap { $0 })
            case 19: plain.note(both(one, other).map(\.0))
            case 20: if dice.roll(2) == 0 { one.upon { _ in use() } } else { one.upon { _ in use() }.cancel() }
            case 21: one.onProgress(on: .queue(queue)) { _ in use() }
            case 22, 23: one.cancel()
            case 24: pick(promises, &dice).succeed(dice.roll(100))
            case 25: pick(promises, &dice).fail(Oops.one)
            case 26: pick(promises, &dice).resolve(with: one)
            case 27: pick(promises, &dice).report(ProgressUpdate(completed: Int64(dice.roll(100)), total: 100))
            case 28:
                plain.note(
                    work.add {
                        use(); return one
                    })
            default: wait(for: one, cancelled: dice.roll(2) == 0)
            }
        }

        private func make(answering: Bool, _ use: @escaping @Sendable () -> Void) {
            let promise = Promise<Int, any Error> { promise in
                use()
                if answering { promise.succeed(5) }
            }
            promises.note(promise)
            plain.note(promise.deferred)
        }

        private func makeTyped(_ use: @escaping @Sendable () -> Void) {
            let promise = Promise<Int, Oops> { promise in
                use()
                promise.fail(.cancelled)
            }
            typedPromises.note(promise)
            typed.note(promise.deferred)
        }

        private func wait(for deferred: Plain, cancelled: Bool) {
            // Owned by the list, which the test waits for.
            let task = Task { _ = try? await deferred.get() }
            tasks.note(task)
            if cancelled { task.cancel() }
        }
    }
}
