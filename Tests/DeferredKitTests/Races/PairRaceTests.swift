import DeferredKit
import Testing

/// Every operation against every other, on one Deferred and on neighbours in a chain, with the last references dropped.
@Suite(.serialized) struct PairRaceTests {
    typealias Plain = Deferred<Int, any Error>

    enum Operation: CaseIterable { case add, drop, resolve, cancel, pause, progress }
    enum Level: Int { case top, middle, bottom }

    struct Pair: CustomTestStringConvertible {
        let first: (Operation, Level)
        let second: (Operation, Level)
        var testDescription: String { "\(first.0) \(first.1) against \(second.0) \(second.1)" }
    }

    static let pairs: [Pair] = [(Level.middle, Level.middle), (.top, .middle), (.middle, .bottom)].flatMap { levels in
        Operation.allCases.flatMap { first in
            Operation.allCases.map { second in Pair(first: (first, levels.0), second: (second, levels.1)) }
        }
    }

    @Test(arguments: pairs) func operations_loseNothingAndLeakNothing(pair: Pair) {
        let population = Population()
        duel(Rounds.each, pair.testDescription) { round in
            let stage = Stage(population, isPaused: round % 2 == 0 && pair.first.0 != .pause && pair.second.0 != .pause)
            let first = stage.act(pair.first)
            let second = stage.act(pair.second)
            stage.letGo()
            return Duel(first: first, second: second, verdict: { stage.verdict() })
        }
        #expect(population.count == 0)
    }

    /// A chain of three: the middle one waits for the Deferred from its closure. The acts have the only references to
    /// it.
    private final class Stage: Sendable {
        private let outer = Box<Promise<Int, any Error>>(nil)
        private let inner = Promise<Int, any Error>()
        private let chain = Box<[Plain]>(nil)
        private let population: Population
        private let isPaused: Bool
        private let drops = Box(false)
        /// A callback of each level, and the added callbacks.
        private let tallies: [Tally] = (0..<5).map { _ in Tally() }
        private let added = Box(0)

        init(_ population: Population, isPaused: Bool) {
            self.population = population
            self.isPaused = isPaused
            let promise = Promise<Int, any Error>()
            let token = population.token()
            let middle = promise.deferred.flatMap { [inner] _ in withExtendedLifetime(token) { inner.deferred } }
            let bottom = middle.map { value in withExtendedLifetime(token) { value } }
            outer.value = promise
            chain.value = [promise.deferred, middle, bottom]
            for (index, deferred) in [promise.deferred, middle, bottom].enumerated() {
                observe(deferred, tallies[index])
            }
            if isPaused { promise.succeed(1) }
        }

        private func observe(_ deferred: Plain, _ tally: Tally) {
            let token = population.token()
            deferred.upon { _ in withExtendedLifetime(token) { _ = tally.note(0) } }
        }

        /// From here only the acts have references to the chain.
        func letGo() {
            chain.value = nil
        }

        func act(_ operation: (Operation, Level)) -> @Sendable () -> Void {
            let handle = Box(chain.value?[operation.1.rawValue])
            let promise = Box(outer.value)
            switch operation.0 {
            case .add:
                let tally = tallies[3 + (added.value ?? 0)]
                added.value = (added.value ?? 0) + 1
                return { [self] in
                    guard let deferred = handle.value.take() else { return }
                    promise.value = nil
                    let token = population.token()
                    observe(deferred.map { value in withExtendedLifetime(token) { value } }, tally)
                }
            case .drop:
                if operation.1 == .top {
                    drops.value = true
                    outer.value = nil
                }
                return {
                    promise.value = nil
                    handle.value = nil
                }
            case .resolve:
                return { [self] in
                    handle.value = nil
                    let promise = promise.value.take()
                    if isPaused {
                        inner.succeed(2)
                    } else {
                        promise?.succeed(1)
                        inner.succeed(2)
                    }
                }
            case .cancel:
                return {
                    promise.value = nil
                    handle.value.take()?.cancel()
                }
            case .pause:
                return {
                    handle.value = nil
                    promise.value.take()?.succeed(1)
                }
            case .progress:
                return { [self] in
                    handle.value = nil
                    let promise = promise.value.take()
                    for step in 1...3 {
                        let update = ProgressUpdate(completed: Int64(step), total: 3)
                        if isPaused { inner.report(update) } else { promise?.report(update) }
                    }
                }
            }
        }

        func verdict() -> String? {
            outer.value.take()?.succeed(1)
            inner.succeed(2)
            let counts = tallies.map(\.count)
            let expected = [1, 1, 1, (added.value ?? 0) > 0 ? 1 : 0, (added.value ?? 0) > 1 ? 1 : 0]
            // Consumers of a dropped promise are never called.
            let isRight = zip(counts, expected).allSatisfy { $0 == $1 || (drops.value == true && $0 < $1) }
            return isRight ? nil : "called \(counts) times, not \(expected)"
        }
    }
}
