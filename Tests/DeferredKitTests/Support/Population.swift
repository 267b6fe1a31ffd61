import Synchronization

/// Counts how many of its tokens are alive, now and at most.
final class Population: Sendable {
    private let living = Atomic(0)
    private let peak = Atomic(0)

    /// An object that counts while it is alive.
    final class Token: Sendable {
        private let population: Population

        init(_ population: Population) {
            self.population = population
            let now = population.living.wrappingAdd(1, ordering: .relaxed).newValue
            population.peak.max(now, ordering: .relaxed)
        }

        deinit { population.living.wrappingSubtract(1, ordering: .relaxed) }
    }

    func token() -> Token { Token(self) }
    var count: Int { living.load(ordering: .relaxed) }
    var most: Int { peak.load(ordering: .relaxed) }
}
