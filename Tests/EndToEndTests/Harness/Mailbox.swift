import Dispatch
import Synchronization

/// An element that a test awaited did not arrive in time.
struct DeadlinePassed: Error, CustomStringConvertible {
    let awaited: String
    let seconds: Double
    /// The elements that arrived instead.
    let instead: String

    var description: String { "No \(awaited) came within \(seconds) s; instead: \(instead)" }
}

/// Elements from other threads, in order, which a test removes as it expects them.
///
/// Every wait has a deadline. The number of elements is bounded by the actions of one test.
final class Mailbox<Element: Sendable>: Sendable {
    private struct Waiter {
        let isWanted: @Sendable (Element) -> Bool
        let continuation: CheckedContinuation<Element?, any Error>
    }

    private struct State {
        var elements: [Element] = []
        var waiters: [(id: Int, waiter: Waiter)] = []
        var lastWaiter = 0
        var isClosed = false
    }

    private let state = Mutex(State())

    /// All elements that were not removed yet.
    var waiting: [Element] { state.withLock(\.elements) }

    /// Adds an element; the first waiter for such an element gets it.
    func put(_ element: Element) {
        let waiter = state.withLock { state -> Waiter? in
            guard let index = state.waiters.firstIndex(where: { $0.waiter.isWanted(element) }) else {
                state.elements.append(element)
                return nil
            }
            return state.waiters.remove(at: index).waiter
        }
        waiter?.continuation.resume(returning: element)
    }

    /// Ends the input; waiters get nil.
    func close() {
        let waiters = state.withLock { state in
            state.isClosed = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for (_, waiter) in waiters { waiter.continuation.resume(returning: nil) }
    }

    /// Removes the first wanted element, and waits for it if necessary; nil if none can arrive any more.
    func next(
        _ awaited: String, within seconds: Double = Patience.seconds,
        where isWanted: @escaping @Sendable (Element) -> Bool = { _ in true }
    ) async throws -> Element? {
        try await withCheckedThrowingContinuation { continuation in
            let (found, number) = state.withLock { state -> (Element??, Int) in
                if let index = state.elements.firstIndex(where: isWanted) {
                    return (.some(state.elements.remove(at: index)), 0)
                }
                if state.isClosed { return (.some(nil), 0) }
                state.lastWaiter += 1
                state.waiters.append((state.lastWaiter, Waiter(isWanted: isWanted, continuation: continuation)))
                return (nil, state.lastWaiter)
            }
            if let found { return continuation.resume(returning: found) }
            DispatchQueue.global().asyncAfter(deadline: .now() + seconds) { [weak self] in
                self?.expire(number, awaited, seconds)
            }
        }
    }

    private func expire(_ number: Int, _ awaited: String, _ seconds: Double) {
        let (waiter, elements) = state.withLock { state -> (Waiter?, [Element]) in
            guard let index = state.waiters.firstIndex(where: { $0.id == number }) else { return (nil, []) }
            return (state.waiters.remove(at: index).waiter, state.elements)
        }
        let instead = elements.isEmpty ? "nothing" : elements.suffix(8).map { "\($0)" }.joined(separator: " | ")
        waiter?.continuation.resume(
            throwing: DeadlinePassed(awaited: awaited, seconds: seconds, instead: String(instead.prefix(4000))))
    }
}

/// The longest time that a test waits for an expected event, so that a hanging test ends; it is so long that no verdict
/// depends on the load of the machine.
enum Patience {
    static let seconds = 300.0
}
