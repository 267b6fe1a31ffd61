import NIOCore
import Synchronization

/// Counts the memory that one user's connections take, and bounds it by `limits.memoryPerUser`.
///
/// Above the bound the user's sockets are not read and no further line is handled. Registrations, which may last for
/// years, take at most half of it, so there is always room for work, which ends by itself. Only unread answers stay:
/// such a connection is closed while another of its user waits for room.
final class UserBudget: Sendable {
    enum Kind: Int {
        /// Values of requests, and answers being written.
        case work
        /// Answers and notifications that clients have not yet read.
        case unread
        /// Waits, watches and the answers of unfinished batches.
        case registration
        /// Long lines until they are handled; beside the bound, as work waits for them.
        case line
    }

    private struct State {
        private var counts = [0, 0, 0, 0]
        var used: Int { self[.work] + self[.unread] + self[.registration] }
        /// Waiters for room: for a line of `line` bytes, or for work.
        var waiting: [(line: Int?, goOn: @Sendable () -> Void)] = []
        var isWatching = false
        var outboxes: [ObjectIdentifier: Outbox] = [:]

        subscript(kind: Kind) -> Int {
            get { counts[kind.rawValue] }
            set { counts[kind.rawValue] = newValue }
        }
    }

    private let limit: Atomic<Int>
    private let state = Mutex(State())

    init(limit: Int) { self.limit = Atomic(limit) }

    private var most: Int { limit.load(ordering: .relaxed) }

    /// The bytes counted now.
    var used: Int { state.withLock { $0.used + $0[.line] } }

    /// Whether another line may be read or handled.
    var hasRoom: Bool { state.withLock { $0.used < most } }

    /// Changes the bound, and the number of bytes that may wait for each connection.
    func configure(limit: Int, outbound: Int) {
        self.limit.store(limit, ordering: .relaxed)
        for outbox in outboxes { outbox.configure(limit: outbound) }
        change { _ in }
    }

    // MARK: - Counting

    /// Adds bytes, or subtracts them if negative, whatever the bound is.
    func add(_ bytes: Int, as kind: Kind) {
        if bytes < 0 { change { $0[kind] += bytes } } else { state.withLock { $0[kind] += bytes } }
    }

    /// Counts a registration if there is room; returns whether there is.
    func registers(_ bytes: Int) -> Bool {
        state.withLock { state in
            let registered = state[.registration]
            guard registered + bytes <= most / 2 || registered == 0 && bytes <= most else { return false }
            state[.registration] += bytes
            return true
        }
    }

    /// Whether registrations that have grown leave room for work; otherwise their connections end.
    var mayGrow: Bool { state.withLock { $0[.registration] <= most / 4 * 3 } }

    // MARK: - Waiting

    /// Returns once there is room for work; all waiters resume at once, so each checks again.
    func room(on loop: any EventLoop) async {
        while !hasRoom {
            await withCheckedContinuation { continuation in
                wait(on: loop) { continuation.resume() }
            }
        }
    }

    /// Calls `goOn` once the user's sockets may be read: at once, or on the event loop.
    func whenReadable(on loop: any EventLoop, _ goOn: @escaping @Sendable () -> Void) {
        if hasRoom { goOn() } else { wait(on: loop, goOn) }
    }

    /// Calls `goOn` on the event loop once a line fits into an eighth of the bound; one line always fits.
    func whenReserved(line bytes: Int, on loop: any EventLoop, _ goOn: @escaping @Sendable (BudgetCharge) -> Void) {
        wait(line: bytes, on: loop) { goOn(BudgetCharge(.line, counted: bytes, in: self)) }
    }

    private func wait(line: Int? = nil, on loop: any EventLoop, _ goOn: @escaping @Sendable () -> Void) {
        change { $0.waiting.append((line, { loop.execute(goOn) })) }
        let begins = state.withLock { state in
            defer { state.isWatching = state.isWatching || !state.waiting.isEmpty }
            return !state.isWatching && !state.waiting.isEmpty
        }
        if begins { loop.scheduleTask(in: .seconds(1)) { self.lookAround(on: loop) } }
    }

    /// Changes the counts, and resumes in order the waiters that now have room.
    private func change(_ body: (inout State) -> Void) {
        let most = most
        let next = state.withLock { state -> [@Sendable () -> Void] in
            body(&state)
            if state.waiting.isEmpty { return [] }
            var next: [@Sendable () -> Void] = []
            state.waiting = state.waiting.filter { waiter in
                if let line = waiter.line {
                    guard state[.line] == 0 || state[.line] + line <= most / 8 else { return true }
                    state[.line] += line
                } else if state.used >= most {
                    return true
                }
                next.append(waiter.goOn)
                return false
            }
            return next
        }
        for goOn in next { goOn() }
    }

    // MARK: - Clients that do not read

    func enter(_ outbox: Outbox) { state.withLock { $0.outboxes[ObjectIdentifier(outbox)] = outbox } }

    func leave(_ outbox: Outbox) { _ = state.withLock { $0.outboxes.removeValue(forKey: ObjectIdentifier(outbox)) } }

    private var outboxes: [Outbox] { state.withLock { Array($0.outboxes.values) } }

    /// Closes the connection with the most unread bytes if unread bytes alone exceed the bound: notifications cannot be
    /// held back.
    func makeRoom() {
        guard state.withLock({ $0[.unread] > most }) else { return }
        outboxes.max { $0.backlog < $1.backlog }?.overflow()
    }

    /// Seconds for which a client may read nothing while another of its user waits, as it may lack processor time.
    private static let patience = 5

    private func lookAround(on loop: any EventLoop) {
        for outbox in outboxes where outbox.idles() >= Self.patience { outbox.overflow() }
        let goesOn = state.withLock { state in
            state.isWatching = !state.waiting.isEmpty
            return state.isWatching
        }
        if goesOn { loop.scheduleTask(in: .seconds(1)) { self.lookAround(on: loop) } }
    }
}

/// Bytes of a budget, released with their last owner.
final class BudgetCharge: Sendable {
    private let budget: UserBudget
    private let kind: UserBudget.Kind
    private let bytes: Atomic<Int>

    /// Wraps bytes that are already counted.
    fileprivate init(_ kind: UserBudget.Kind, counted bytes: Int, in budget: UserBudget) {
        self.budget = budget
        self.kind = kind
        self.bytes = Atomic(bytes)
    }

    /// Counts work.
    convenience init(work bytes: Int, in budget: UserBudget) {
        budget.add(bytes, as: .work)
        self.init(.work, counted: bytes, in: budget)
    }

    /// Counts a registration; nil if there is no room.
    convenience init?(registering bytes: Int, in budget: UserBudget) {
        guard budget.registers(bytes) else { return nil }
        self.init(.registration, counted: bytes, in: budget)
    }

    /// Adds bytes, or subtracts them if negative; returns false if the connection has to end.
    func grow(by more: Int) -> Bool {
        bytes.add(more, ordering: .relaxed)
        budget.add(more, as: kind)
        return more <= 0 || budget.mayGrow
    }

    /// Raises the charge to at least `least` bytes; returns false if the connection has to end.
    func raise(to least: Int) -> Bool { grow(by: max(0, least - bytes.load(ordering: .relaxed))) }

    /// Reduces the charge to at most `most` bytes.
    func shrink(to most: Int) { _ = grow(by: min(0, most - bytes.load(ordering: .relaxed))) }

    deinit { budget.add(-bytes.load(ordering: .relaxed), as: kind) }
}
