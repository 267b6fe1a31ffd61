import Synchronization

/// How many connections a run may have to its host. It is given some, and can be asked to do with fewer while it runs.
///
/// One remains in any case. What is given and not used is given back without asking the source.
package final class ConnectionAllowance: Sendable {
    private struct State {
        var granted: Int
        /// Those that the source uses.
        var open = 1
        /// How many it is still to give back, and how many of those are about to close.
        var wanted = 0
        var closing = 0
        /// Called where the source is asked to close one.
        var asked: (@Sendable () -> Void)?
    }

    private let state: Mutex<State>
    private let givenBack: @Sendable () -> Void

    /// `givenBack` is called once for each connection that was asked for and is closed.
    package init(_ count: Int, givenBack: @escaping @Sendable () -> Void = {}) {
        state = Mutex(State(granted: max(1, count)))
        self.givenBack = givenBack
    }

    /// How many the source may have.
    var count: Int { state.withLock { max(1, $0.granted - $0.wanted) } }

    /// Asks for one of them.
    package func reclaim() {
        var isUnused = false
        let asked = state.withLock { state -> (@Sendable () -> Void)? in
            guard state.granted > 1 else { return nil }
            isUnused = state.granted - state.wanted - state.closing > state.open
            guard isUnused else {
                state.wanted += 1
                return state.asked
            }
            state.granted -= 1
            return nil
        }
        if isUnused { givenBack() }
        asked?()
    }

    /// Has `body` called whenever a connection is to close, until it is nil again: one that waits for its server does not ask.
    func whenAsked(_ body: (@Sendable () -> Void)?) { state.withLock { $0.asked = body } }

    /// The source is about to use at most `count` connections; gives how many it may.
    func open(_ count: Int) -> Int {
        state.withLock { state in
            state.open = max(1, min(count, state.granted - state.wanted - state.closing))
            return state.open
        }
    }

    /// Whether one of several connections is to close, with ``close()``; it is told so once.
    func mustClose() -> Bool {
        state.withLock { state in
            guard state.wanted > 0, state.open - state.closing > 1 else { return false }
            (state.wanted, state.closing) = (state.wanted - 1, state.closing + 1)
            return true
        }
    }

    /// The source has one connection less, for good.
    func close() {
        let isGivenBack = state.withLock { state in
            guard state.open > 1 else { return false }
            state.open -= 1
            if state.closing > 0 {
                state.closing -= 1
            } else if state.wanted > 0 {
                state.wanted -= 1
            } else {
                return false
            }
            state.granted -= 1
            return true
        }
        if isGivenBack { givenBack() }
    }
}
