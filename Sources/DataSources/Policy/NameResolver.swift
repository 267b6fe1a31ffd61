import CLinux
import JobModel
import NIOCore
import Synchronization

/// Resolves names without blocking anybody, though the system's resolver can block for minutes and cannot be told to
/// stop.
///
/// Each lookup that runs has a thread of its own. A user has at most ``perUser`` of them, and all have ``total``; what is
/// above waits in a queue of its user, whose turn comes as often as any other's. Whoever waits for a name can give up at
/// any time; a lookup that nobody waits for is not begun. Those who want the same name for the same user share a lookup.
package final class NameResolver: Sendable {
    /// The system's resolver, which blocks.
    package typealias Lookup = @Sendable (_ name: String) -> Result<[IPAddress], Failure>

    /// Why a name has no address, in the resolver's words.
    package struct Failure: Error {
        let reason: String

        package init(reason: String) {
            self.reason = reason
        }
    }

    private struct Key: Hashable {
        let user: UInt32
        let name: String
    }

    private struct Entry {
        var waiters: [Int: Delivery<Result<[IPAddress], JobError>>] = [:]
        var isRunning = false
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        var turns = TurnQueue<String>(perUser: perUser, total: total)
        var lastWaiter = 0
    }

    /// Lookups of one user, and of all, at a time.
    static let perUser = 4
    static let total = 64

    private let state = Mutex(State())
    private let lookup: Lookup

    init(lookup: @escaping Lookup) {
        self.lookup = lookup
    }

    /// The addresses of `name`, at least one; no later than the transfer is interrupted or cancelled, or `limit` passes.
    func addresses(
        of name: String, for user: UInt32, _ control: TransferControl, limit: TransferControl.Limit?
    ) async throws(JobError) -> [IPAddress] {
        let key = Key(user: user, name: name)
        var waiter = 0
        defer { leave(waiter, key) }
        return try await control.wait(limit: limit) { delivery in
            waiter = join(key, delivery)
            start()
        }
    }

    private func join(_ key: Key, _ delivery: Delivery<Result<[IPAddress], JobError>>) -> Int {
        state.withLock { state in
            state.lastWaiter += 1
            if state.entries[key] == nil {
                state.entries[key] = Entry()
                state.turns.append(key.name, for: key.user)
            }
            state.entries[key]?.waiters[state.lastWaiter] = delivery
            return state.lastWaiter
        }
    }

    /// Removes a waiter, and the lookup if nobody else waits for it.
    private func leave(_ waiter: Int, _ key: Key) {
        state.withLock { state in
            guard var entry = state.entries[key], entry.waiters.removeValue(forKey: waiter) != nil else { return }
            state.entries[key] = entry
            guard entry.waiters.isEmpty, !entry.isRunning else { return }
            state.entries[key] = nil
            state.turns.remove(for: key.user) { $0 == key.name }
        }
    }

    /// Starts threads for what may run.
    private func start() {
        while let key = state.withLock({ Self.next(&$0) }) {
            let isStarted = Self.startThread { [self] in run(from: key) }
            if !isStarted { finish(key, .failure(Failure(reason: "no thread could be started"))) }
        }
    }

    /// The lookup whose turn it is, marked as running.
    private static func next(_ state: inout State) -> Key? {
        while let (user, name) = state.turns.next() {
            let key = Key(user: user, name: name)
            // Waiters that have given up may still be in the list.
            if state.entries[key]?.waiters.values.contains(where: { !$0.isDelivered }) == true {
                state.entries[key]?.isRunning = true
                return key
            }
            state.entries[key] = nil
            state.turns.finish(user)
        }
        return nil
    }

    private func run(from first: Key) {
        var key = first
        while true {
            finish(key, lookup(key.name))
            guard let following = state.withLock({ Self.next(&$0) }) else { return }
            key = following
        }
    }

    private func finish(_ key: Key, _ outcome: Result<[IPAddress], Failure>) {
        let waiters = state.withLock { state in
            state.turns.finish(key.user)
            return state.entries.removeValue(forKey: key)?.waiters ?? [:]
        }
        let told = outcome.mapError { failure in
            JobError(
                .dns, "The name \(key.name) could not be resolved (\(failure.reason)); check its spelling.",
                retryable: true)
        }
        for waiter in waiters.values { waiter.deliver(told) }
    }

    /// A thread outside any pool: most of those allowed are never needed, and a pool would lose the thread of a lookup
    /// that blocks.
    private static func startThread(_ body: @escaping @Sendable () -> Void) -> Bool {
        final class Box {
            let body: @Sendable () -> Void
            init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        }
        let box = Unmanaged.passRetained(Box(body))
        // Modules of the resolver keep answers on the stack.
        let result = deferd_start_thread(
            1 << 20,
            { pointer in
                if let pointer { Unmanaged<Box>.fromOpaque(pointer).takeRetainedValue().body() }
                return nil
            }, box.toOpaque())
        if result != 0 { box.release() }
        return result == 0
    }
}
