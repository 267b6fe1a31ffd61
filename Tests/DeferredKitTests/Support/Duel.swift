import Foundation
import Synchronization
import Testing

/// The acts of two threads at the same moment, and a check of the result.
struct Duel {
    /// Each act is released on its own thread right after it ran, with its references.
    let first: @Sendable () -> Void
    let second: @Sendable () -> Void
    /// Runs alone; returns a description of the failure.
    let verdict: () -> String?
}

/// Lets two threads meet repeatedly with varying delays, and fails with the first failure.
func duel(_ rounds: Int, _ name: String = "", _ make: @escaping @Sendable (_ round: Int) -> Duel) {
    let corners = Corners()
    let opponent = Thread {
        for round in 0..<rounds {
            corners.meet(0)
            let act = corners.second.take()
            corners.meet(1)
            corners.dawdle(round / 16 % 16)
            run(act)
            corners.meet(2)
        }
    }
    opponent.stackSize = 512 * 1024
    opponent.start()
    var problem: String?
    for round in 0..<rounds {
        var verdict: (() -> String?)?
        var act: (@Sendable () -> Void)?
        do {
            let duel = make(round)
            act = duel.first
            corners.second = duel.second
            verdict = duel.verdict
        }
        corners.meet(0)
        corners.meet(1)
        corners.dawdle(round % 16)
        run(act.take())
        corners.meet(2)
        if problem == nil, let text = verdict?() { problem = "\(name) round \(round): \(text)" }
    }
    #expect(problem == nil)
}

private func run(_ act: consuming (@Sendable () -> Void)?) {
    act?()
}

/// The meeting point of the two threads. Writes of one are visible to the other after the next meeting.
private final class Corners: @unchecked Sendable {
    // Unchecked: written before a meeting, read after it.
    var second: (@Sendable () -> Void)?
    private let arrivals0 = Atomic(0)
    private let arrivals1 = Atomic(0)
    private let arrivals2 = Atomic(0)
    private let idle = Atomic(0)

    /// Returns once both have come; `point` tells three meetings in turn apart.
    func meet(_ point: Int) {
        switch point {
        case 0: Corners.meet(arrivals0)
        case 1: Corners.meet(arrivals1)
        default: Corners.meet(arrivals2)
        }
    }

    private static func meet(_ arrivals: borrowing Atomic<Int>) {
        let mine = arrivals.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
        let both = (mine + 1) / 2 * 2
        var rounds = 0
        while arrivals.load(ordering: .acquiring) < both {
            rounds += 1
            // A thread that sleeps is woken beside busy processes, while one that yields waits for its turn after theirs.
            if rounds > 10_000 { usleep(20) }
        }
    }

    /// Takes a moment.
    func dawdle(_ length: Int) {
        for _ in 0..<length { idle.add(1, ordering: .relaxed) }
    }
}

extension Optional {
    /// Stores nil and returns the previous value.
    mutating func take() -> Self {
        let value = self
        self = nil
        return value
    }
}

/// A reference that one thread drops or takes; others know nothing of it.
final class Box<Value>: @unchecked Sendable {
    // Unchecked: see above.
    var value: Value?
    init(_ value: Value?) { self.value = value }
}

/// How many rounds a race has: as many as there is time for.
enum Rounds {
    #if DEFERRED_FEW_ROUNDS
        static let named = 5_000
        static let each = 300
    #elseif DEBUG
        static let named = 20_000
        static let each = 2_000
    #else
        static let named = 100_000
        static let each = 100_000
    #endif
}
