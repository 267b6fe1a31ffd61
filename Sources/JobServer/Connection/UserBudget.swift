import NIOCore
import Synchronization

/// Counts the bytes that one user's connections make the daemon hold, and bounds them by `limits.memoryPerUser`.
///
/// There are three kinds. *Lines* are being read or wait to be handled. *Registrations* are waits, watches and the answers of
/// unfinished batches, which may stay for years. Everything else is *work*, which ends by itself: values of requests, answers
/// that are being written, and answers that the client has yet to read.
///
/// Past the bound the user's sockets are not read and no further line is handled. Lines and registrations have bounds of their
/// own below that, so that there is always room for work. Work that does not end is that of a client that does not read: its
/// connection is closed while another of its user waits for room.
final class UserBudget: Sendable {
    fileprivate struct State {
        /// Registrations and work.
        var used = 0
        /// Answers and notifications that clients have yet to read, of that.
        var unread = 0
        var registered = 0
        /// Lines being read and lines waiting.
        var lines = 0
        /// Lines being read, of which each counts as long as a line may be.
        var reserved = 0
        var waiting: [(need: Need, goOn: @Sendable () -> Void)] = []
        var isWatching = false
        var members: [ObjectIdentifier: Member] = [:]
    }

    /// What a connection waits for.
    fileprivate enum Need {
        /// Room for work.
        case work
        /// Room to read the socket.
        case read
        /// Room for a whole line of at most so many bytes.
        case line(Int)
    }

    fileprivate struct Member {
        weak var outbox: Outbox?
        /// Its `sent` at the last look, and how many looks it has been the same.
        var sent = 0
        var idleLooks = 0
    }

    /// How often the connections of a user are looked at while one of them waits for room, and how many times one may have
    /// read nothing: 5 seconds, as a reader can wait that long for a processor on a busy machine.
    private static let look = TimeAmount.seconds(1)
    private static let patience = 5
    /// With less than this unread on each, all connections of a user are far from the bound.
    private static let smallBacklog = 64 << 10

    private let limit: Atomic<Int>
    private let state = Mutex(State())

    init(limit: Int) { self.limit = Atomic(limit) }

    private var most: Int { limit.load(ordering: .relaxed) }

    /// The bytes that count now.
    var used: Int { state.withLock { $0.used + $0.lines } }

    /// Changes the bound, and how many bytes may wait for each connection.
    func configure(limit: Int, outbound: Int) {
        self.limit.store(limit, ordering: .relaxed)
        for outbox in outboxes { outbox.configure(limit: outbound) }
        change { _ in }
    }

    // MARK: - Work

    /// Whether another line may be handled.
    var hasRoom: Bool { state.withLock { $0.used < most } }

    /// Counts work, whatever the bound is.
    func charge(_ bytes: Int) { state.withLock { $0.used += bytes } }

    func release(_ bytes: Int) {
        if bytes > 0 { change { $0.used -= bytes } }
    }

    /// Counts what a client has yet to read.
    func charge(unread bytes: Int) {
        state.withLock { state in
            state.unread += bytes
            state.used += bytes
        }
    }

    func release(unread bytes: Int) {
        guard bytes > 0 else { return }
        change { state in
            state.unread -= bytes
            state.used -= bytes
        }
    }

    /// Returns once there is room for work. All who wait are let go at once, so each looks again.
    func room(on loop: any EventLoop) async {
        while !hasRoom {
            await withCheckedContinuation { continuation in
                wait(for: .work, on: loop) { continuation.resume() }
            }
        }
    }

    // MARK: - Registrations

    /// Counts a registration if there is room for it: in half of the bound, as the rest is for what ends by itself.
    func registers(_ bytes: Int) -> Bool {
        state.withLock { state in
            guard state.registered + bytes <= most / 2 || state.registered == 0 && bytes <= most else { return false }
            state.registered += bytes
            state.used += bytes
            return true
        }
    }

    /// Counts what a registration has grown by; false where it takes so much of the bound that its connection has to end.
    func grows(by bytes: Int) -> Bool {
        state.withLock { state in
            state.registered += bytes
            state.used += bytes
            return state.registered <= most / 4 * 3
        }
    }

    func unregister(_ bytes: Int) {
        change { state in
            state.registered -= bytes
            state.used -= bytes
        }
    }

    // MARK: - Lines

    /// Counts lines that were read, until they are handled.
    func add(lines bytes: Int) { state.withLock { $0.lines += bytes } }

    func remove(lines bytes: Int) { change { $0.lines -= bytes } }

    func giveBack(line bytes: Int) {
        change { state in
            state.reserved -= bytes
            state.lines -= bytes
        }
    }

    /// Calls `goOn` once the user's sockets may be read: at once, or on the event loop.
    func whenReadable(on loop: any EventLoop, _ goOn: @escaping @Sendable () -> Void) {
        if state.withLock({ $0.used + $0.lines < most }) { goOn() } else { wait(for: .read, on: loop, goOn) }
    }

    /// Calls `goOn` on the event loop once there is room for a whole line: in an eighth of the bound, and always for one line.
    func whenReserved(line bytes: Int, on loop: any EventLoop, _ goOn: @escaping @Sendable () -> Void) {
        wait(for: .line(bytes), on: loop, goOn)
    }

    // MARK: - Waiting

    private func wait(for need: Need, on loop: any EventLoop, _ goOn: @escaping @Sendable () -> Void) {
        change { $0.waiting.append((need, { loop.execute(goOn) })) }
        let begins = state.withLock { state in
            if state.isWatching || state.waiting.isEmpty { return false }
            state.isWatching = true
            return true
        }
        if begins { loop.scheduleTask(in: Self.look) { self.lookAround(on: loop) } }
    }

    /// Changes what counts, and lets those go on, in order, for whom there is room then.
    private func change(_ body: (inout State) -> Void) {
        let most = most
        let next = state.withLock { state -> [@Sendable () -> Void] in
            body(&state)
            if state.waiting.isEmpty { return [] }
            var next: [@Sendable () -> Void] = []
            state.waiting = state.waiting.filter { waiter in
                guard state.meets(waiter.need, within: most) else { return true }
                next.append(waiter.goOn)
                return false
            }
            return next
        }
        for goOn in next { goOn() }
    }

    // MARK: - Clients that do not read

    func enter(_ outbox: Outbox) { state.withLock { $0.members[ObjectIdentifier(outbox)] = Member(outbox: outbox) } }

    func leave(_ outbox: Outbox) { _ = state.withLock { $0.members.removeValue(forKey: ObjectIdentifier(outbox)) } }

    private var outboxes: [Outbox] { state.withLock { $0.members.values.compactMap(\.outbox) } }

    /// Closes the connections with the most unread bytes where these alone go past the bound, as nothing holds notifications
    /// back. What a socket has of a closed connection counts as given back already, or connections that read would be closed as
    /// well.
    func makeRoom() {
        var excess = state.withLock(\.unread) - most
        guard excess > 0 else { return }
        for (outbox, size) in outboxes.map({ ($0, size: $0.backlog.size) }).sorted(by: { $0.size > $1.size }) {
            guard excess > 0, size > 0 else { return }
            outbox.overflow()
            excess -= size
        }
    }

    /// Closes the connections that have read nothing for long, as others of their user wait for what they take.
    private func lookAround(on loop: any EventLoop) {
        let backlogs = outboxes.map { ($0, $0.backlog) }
        var idle: [Outbox] = []
        let goesOn = state.withLock { state in
            for (outbox, backlog) in backlogs {
                guard var member = state.members[ObjectIdentifier(outbox)] else { continue }
                let isIdle = backlog.size > Self.smallBacklog && backlog.sent == member.sent
                member = Member(outbox: outbox, sent: backlog.sent, idleLooks: isIdle ? member.idleLooks + 1 : 0)
                state.members[ObjectIdentifier(outbox)] = member
                if member.idleLooks >= Self.patience { idle.append(outbox) }
            }
            state.isWatching = !state.waiting.isEmpty
            return state.isWatching
        }
        if goesOn { loop.scheduleTask(in: Self.look) { self.lookAround(on: loop) } }
        for outbox in idle { outbox.overflow() }
    }
}

extension UserBudget.State {
    /// Whether there is what a connection waits for; a line is reserved then.
    fileprivate mutating func meets(_ need: UserBudget.Need, within most: Int) -> Bool {
        switch need {
        case .work: return used < most
        case .read: return used + lines < most
        case .line(let bytes):
            guard reserved == 0 || reserved + bytes <= most / 8 else { return false }
            reserved += bytes
            lines += bytes
            return true
        }
    }
}

/// Bytes of a budget that are given back with their last owner.
final class BudgetCharge: Sendable {
    enum Kind { case work, registration, lines }

    private let budget: UserBudget
    private let kind: Kind
    private let bytes: Atomic<Int>

    /// Counts work or lines.
    init(_ kind: Kind, of bytes: Int, in budget: UserBudget) {
        self.budget = budget
        self.kind = kind
        self.bytes = Atomic(bytes)
        if kind == .lines { budget.add(lines: bytes) } else { budget.charge(bytes) }
    }

    /// Counts a registration; nil where there is no room.
    init?(registering bytes: Int, in budget: UserBudget) {
        guard budget.registers(bytes) else { return nil }
        self.budget = budget
        kind = .registration
        self.bytes = Atomic(bytes)
    }

    /// Counts so many bytes more of a registration; false where its connection has to end.
    func grow(by more: Int) -> Bool {
        bytes.add(more, ordering: .relaxed)
        return budget.grows(by: more)
    }

    /// Counts so many bytes of a registration no more.
    func shrink(by less: Int) {
        bytes.subtract(less, ordering: .relaxed)
        budget.unregister(less)
    }

    deinit {
        let bytes = bytes.load(ordering: .relaxed)
        switch kind {
        case .work: budget.release(bytes)
        case .registration: budget.unregister(bytes)
        case .lines: budget.remove(lines: bytes)
        }
    }
}
