import JobModel
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
        var limit: Int
        var counts = [0, 0, 0, 0]
        var used: Int { self[.work] + self[.unread] + self[.registration] }
        /// Waiters for room: for a line of `line` bytes, or for work.
        var waiters: [(line: Int?, goOn: @Sendable () -> Void)] = []
        /// Whether a timer looks for clients that do not read.
        var isWatching = false
        var outboxes: [ObjectIdentifier: Outbox] = [:]

        subscript(kind: Kind) -> Int {
            get { counts[kind.rawValue] }
            set { counts[kind.rawValue] = newValue }
        }

        /// Takes the waiter's part, if there is room for it.
        mutating func admits(_ line: Int?) -> Bool {
            guard let line else { return used < limit }
            guard self[.line] == 0 || self[.line] + line <= limit / 8 else { return false }
            self[.line] += line
            return true
        }
    }

    private let state: Mutex<State>

    init(limit: Int) { state = Mutex(State(limit: limit)) }

    var used: Int { state.withLock { $0.used + $0[.line] } }

    /// Whether another line may be read or handled.
    var hasRoom: Bool { state.withLock { $0.used < $0.limit } }

    /// Changes the bound, and the number of bytes that may wait for each connection.
    func configure(limit: Int, outbound: Int) {
        for outbox in outboxes { outbox.configure(limit: outbound) }
        change { $0.limit = limit }
    }

    // MARK: - Counting

    /// Adds bytes, or subtracts them if negative, whatever the bound is.
    func add(_ bytes: Int, as kind: Kind) {
        if bytes < 0 { change { $0[kind] += bytes } } else { state.withLock { $0[kind] += bytes } }
    }

    /// Counts a registration; throws if there is no room.
    fileprivate func register(_ bytes: Int) throws(ProtocolError) {
        try state.withLock { (state) throws(ProtocolError) in
            let registered = state[.registration]
            guard registered + bytes <= state.limit / 2 || registered == 0 && bytes <= state.limit else {
                throw .busy(
                    "Your waits, watches and batches take all the memory that they may; end some, or wait a little.",
                    retryAfter: 1)
            }
            state[.registration] += bytes
        }
    }

    /// Whether registrations that have grown leave room for work; otherwise their connections end.
    fileprivate var mayGrow: Bool { state.withLock { $0[.registration] <= $0.limit / 4 * 3 } }

    /// Changes the counts, and resumes in order the waiters that now have room.
    private func change(_ body: (inout State) -> Void) {
        let admitted = state.withLock { state -> [@Sendable () -> Void] in
            body(&state)
            var admitted: [@Sendable () -> Void] = []
            if state.waiters.isEmpty { return admitted }
            state.waiters = state.waiters.filter { waiter in
                guard state.admits(waiter.line) else { return true }
                admitted.append(waiter.goOn)
                return false
            }
            return admitted
        }
        for goOn in admitted { goOn() }
    }

    // MARK: - Waiting

    /// Returns once there is room for work; all waiters resume at once, so each checks again. The caller has no turn of an
    /// outbox, for which other work may wait.
    func room(on loop: any EventLoop) async {
        while !hasRoom {
            await withCheckedContinuation { continuation in whenRoom(on: loop) { continuation.resume() } }
        }
    }

    /// Calls `goOn` once there is room for work: at once, or on the event loop.
    func whenRoom(on loop: any EventLoop, _ goOn: @escaping @Sendable () -> Void) {
        if hasRoom { goOn() } else { wait(on: loop, goOn) }
    }

    /// Calls `goOn` on the event loop once a line fits into an eighth of the bound; one line always fits.
    func whenReserved(line bytes: Int, on loop: any EventLoop, _ goOn: @escaping @Sendable (BudgetCharge) -> Void) {
        wait(line: bytes, on: loop) { goOn(BudgetCharge(.line, counted: bytes, in: self)) }
    }

    private func wait(line: Int? = nil, on loop: any EventLoop, _ goOn: @escaping @Sendable () -> Void) {
        change { $0.waiters.append((line, { loop.execute(goOn) })) }
        closeIdle(on: loop)
    }

    // MARK: - Clients that do not read

    func enter(_ outbox: Outbox) { state.withLock { $0.outboxes[ObjectIdentifier(outbox)] = outbox } }

    func leave(_ outbox: Outbox) { _ = state.withLock { $0.outboxes.removeValue(forKey: ObjectIdentifier(outbox)) } }

    private var outboxes: [Outbox] { state.withLock { Array($0.outboxes.values) } }

    /// Closes the connection with the most unread bytes if unread bytes alone exceed the bound: notifications cannot be
    /// held back.
    func makeRoom() {
        guard state.withLock({ $0[.unread] > $0.limit }) else { return }
        outboxes.max { $0.backlog < $1.backlog }?.overflow()
    }

    /// Seconds for which a client may read nothing while another of its user waits, as it may lack processor time.
    private static let patience = 5

    /// Looks every second for clients that do not read, as long as others wait.
    private func closeIdle(on loop: any EventLoop) {
        guard !state.withLock({ $0.waiters.isEmpty || exchange(&$0.isWatching, with: true) }) else { return }
        loop.scheduleTask(in: .seconds(1)) {
            for outbox in self.outboxes where outbox.idles() > Self.patience { outbox.overflow() }
            self.state.withLock { $0.isWatching = false }
            self.closeIdle(on: loop)
        }
    }
}

/// Bytes of a budget, released with their last owner.
final class BudgetCharge: Sendable {
    private let budget: UserBudget
    private let kind: UserBudget.Kind
    private let counted: Atomic<Int>

    /// Wraps bytes that are already counted.
    fileprivate init(_ kind: UserBudget.Kind, counted bytes: Int, in budget: UserBudget) {
        self.budget = budget
        self.kind = kind
        counted = Atomic(bytes)
    }

    convenience init(work bytes: Int, in budget: UserBudget) {
        budget.add(bytes, as: .work)
        self.init(.work, counted: bytes, in: budget)
    }

    /// Counts a registration; throws if there is no room.
    convenience init(registering bytes: Int, in budget: UserBudget) throws(ProtocolError) {
        try budget.register(bytes)
        self.init(.registration, counted: bytes, in: budget)
    }

    var bytes: Int { counted.load(ordering: .relaxed) }

    /// Changes the charge; returns false if it grew and its connection has to end.
    @discardableResult func resize(to bytes: Int) -> Bool {
        let more = bytes - counted.exchange(bytes, ordering: .relaxed)
        if more != 0 { budget.add(more, as: kind) }
        return more <= 0 || budget.mayGrow
    }

    deinit { budget.add(-bytes, as: kind) }
}
