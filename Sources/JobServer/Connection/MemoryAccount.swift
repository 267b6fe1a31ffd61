import JobModel
import JobProtocol
import Synchronization

/// Counts what the daemon has in memory for one user, over all connections: lines that are being read, requests that
/// are worked on, and answers and notifications that were not sent yet. Its bound is `limits.memoryPerUser`, or less where all
/// users together have much (``MemoryTotal``).
///
/// Past the bound requests are refused, and so are lines that are not complete. Nothing waits for memory, as clients
/// that never read might never give it back. Notifications cannot be refused: if one goes past the bound, the
/// connection with the most unread bytes is closed. A connection is also closed if it reads nothing for a while in which
/// requests of its user are refused.
final class MemoryAccount: Sendable {
    fileprivate struct Member {
        weak var outbox: Outbox?
        /// Its `sent` when it was last looked at, and since when it is the same with much unread.
        var sent = 0
        var stalledSince: ContinuousClock.Instant?
    }

    fileprivate struct State {
        var members: [ObjectIdentifier: Member] = [:]
        var lastLook: ContinuousClock.Instant?
    }

    /// How long a connection may read nothing while others of its user are refused. Refusals themselves do not count: a
    /// thousand of them may come while a reader is only waiting for its turn on a processor. On a busy machine that may take
    /// more than a second.
    fileprivate static let patience = Duration.seconds(5)
    /// How often connections are looked at, however many requests are refused.
    private static let lookInterval = Duration.milliseconds(100)
    /// With less than this unread on each, all connections of a user are far from the bound.
    fileprivate static let smallBacklog = 64 << 10

    private let most: Atomic<Int>
    private let total: MemoryTotal
    let used = Atomic<Int>(0)
    /// The part of it that lines take which are not complete: they may wait for ever, so half is left for others.
    private let unfinished = Atomic<Int>(0)
    private let state = Mutex(State())
    private let now: @Sendable () -> ContinuousClock.Instant
    let turns: Turns

    private let user: UInt32

    init(
        limit: Int, of user: UInt32 = 0, total: MemoryTotal = MemoryTotal(limit: .max),
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        most = Atomic(limit)
        self.user = user
        self.total = total
        self.now = now
        turns = Turns { total.hasSeveralUsers }
        total.enter(user)
    }

    deinit {
        // What was charged is released before; this is so that a mistake there is one user's only.
        total.add(-used.load(ordering: .relaxed))
        total.leave(user)
    }

    /// The bound as it is now.
    private var limit: Int { total.share(of: most.load(ordering: .relaxed)) }

    var isFull: Bool { used.load(ordering: .relaxed) >= limit }

    /// Changes the bound, and how many bytes may wait for each connection; what is past it now is closed when more comes.
    func configure(limit: Int, outbound: Int) {
        most.store(limit, ordering: .relaxed)
        for outbox in state.withLock({ $0.members.values.compactMap(\.outbox) }) { outbox.configure(limit: outbound) }
    }

    /// Whether it is so far past the bound that no more can be added, not even refusals.
    var isOverfull: Bool {
        let limit = limit
        return used.load(ordering: .relaxed) >= limit.saturatingAdding(limit / 2)
    }

    /// Counts bytes, whatever the bound is.
    func charge(_ bytes: Int) {
        guard bytes > 0 else { return }
        used.add(bytes, ordering: .relaxed)
        total.add(bytes)
    }

    func release(_ bytes: Int) {
        guard bytes > 0 else { return }
        used.subtract(bytes, ordering: .relaxed)
        total.add(-bytes)
    }

    /// Counts bytes if they are within the bound.
    func admits(_ bytes: Int) -> Bool {
        let (old, new) = used.add(bytes, ordering: .relaxed)
        guard new <= limit || old <= 0 else {
            used.subtract(bytes, ordering: .relaxed)
            return false
        }
        total.add(bytes)
        return true
    }

    /// The same for bytes of a line whose end has not come.
    func admits(unfinished bytes: Int) -> Bool {
        guard unfinished.add(bytes, ordering: .relaxed).newValue <= limit / 2, admits(bytes) else {
            unfinished.subtract(bytes, ordering: .relaxed)
            return false
        }
        return true
    }

    /// A line that was not complete is so now, and counts like others; or it is dropped.
    func complete(unfinished bytes: Int, isDropped: Bool = false) {
        guard bytes > 0 else { return }
        unfinished.subtract(bytes, ordering: .relaxed)
        if isDropped { release(bytes) }
    }

    // MARK: - Those who do not read

    func enter(_ outbox: Outbox) {
        state.withLock { $0.members[ObjectIdentifier(outbox)] = Member(outbox: outbox) }
    }

    func leave(_ outbox: Outbox) {
        state.withLock { $0.members[ObjectIdentifier(outbox)] = nil }
    }

    /// Closes connections, those with the most unread bytes first, until the user is within the bound.
    ///
    /// What a socket has of a closed connection is given back only when that has ended; it counts as given back already, or
    /// connections that read would be closed as well.
    func makeRoom() {
        let outboxes = state.withLock { $0.members.values.compactMap(\.outbox) }.map { ($0, size: $0.backlog.size) }
        var excess = used.load(ordering: .relaxed) - limit
        for (outbox, size) in outboxes.sorted(by: { $0.size > $1.size }) {
            guard excess > 0, size > 0 else { return }
            outbox.overflow()
            excess -= size
        }
    }

    /// Why a request is refused.
    func refusal() -> ProtocolError {
        let now = now()
        let stalled = state.withLock { state -> Outbox? in
            if let last = state.lastLook, now - last < Self.lookInterval { return nil }
            state.lastLook = now
            return state.mostStalled(at: now)
        }
        stalled?.overflow()
        return ProtocolError(
            .busy,
            "Your requests and unread answers take all the memory that they may; read, or wait a little.",
            [JSONObject.Member(name: "retryAfter", value: 1)])
    }
}

extension MemoryAccount.State {
    /// The connection with the most unread bytes among those that have read nothing for too long.
    fileprivate mutating func mostStalled(at now: ContinuousClock.Instant) -> Outbox? {
        var largest = (outbox: Outbox?.none, size: MemoryAccount.smallBacklog)
        for (key, member) in members {
            guard let outbox = member.outbox else { continue }
            let (size, sent) = outbox.backlog
            let earlier = sent == member.sent ? member.stalledSince : nil
            let since = size > MemoryAccount.smallBacklog ? earlier ?? now : nil
            members[key] = MemoryAccount.Member(outbox: outbox, sent: sent, stalledSince: since)
            if let since, now - since >= MemoryAccount.patience, size > largest.size { largest = (outbox, size) }
        }
        return largest.outbox
    }
}

/// A part of an account that is given back with its last owner.
final class MemoryCharge: Sendable {
    private let account: MemoryAccount
    private let bytes: Atomic<Int>

    /// `bytes` are counted already.
    init(of bytes: Int, in account: MemoryAccount) {
        self.bytes = Atomic(bytes)
        self.account = account
    }

    /// Counts so many bytes more, whatever the bound is; false where the user is so far past it that no more may be added.
    func grow(by more: Int) -> Bool {
        bytes.add(more, ordering: .relaxed)
        account.charge(more)
        return !account.isOverfull
    }

    /// Counts so many bytes no more.
    func shrink(by less: Int) {
        bytes.subtract(less, ordering: .relaxed)
        account.release(less)
    }

    deinit { account.release(bytes.load(ordering: .relaxed)) }
}
