import Synchronization

/// A gate at which scripts wait until the test opens it.
package final class OriginGate: Sendable {
    private let state = Mutex<(isOpen: Bool, waiters: [@Sendable () -> Void])>((false, []))

    package init() {}

    /// Opens the gate for current and later waiters.
    package func open() {
        let waiters = state.withLock { state in
            state.isOpen = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter() }
    }

    func whenOpen(_ body: @escaping @Sendable () -> Void) {
        let isOpen = state.withLock { state in
            if !state.isOpen { state.waiters.append(body) }
            return state.isOpen
        }
        if isOpen { body() }
    }
}
