import JobModel

/// Decides which ready job starts next: the slots of queues, their fair shares among owners, and the permits of hosts.
///
/// A free slot goes to the owner who has work that can start and holds the fewest slots of the queue, among equals to the
/// one served longest ago. The permits of a host are shared in the same way: an owner with more of them waits for one with
/// fewer.
final class Scheduler {
    /// A job whose turn it is. Its slot and permit are taken.
    struct Turn {
        let row: ReadyRow
        let queue: String
        let owner: UInt32
    }

    private final class Share {
        var window: ReadyWindow
        var running = 0
        /// The turn in which it was served last.
        var served: Int64 = 0

        init(_ window: ReadyWindow) { self.window = window }
    }

    private final class Queue {
        var settings: QueueSettings
        var perUser: Int
        var running = 0
        var shares: [UInt32: Share] = [:]
        /// When owners without jobs here were served last, so that one who comes back does not count as never served.
        var left: [UInt32: Int64] = [:]

        init(_ settings: QueueSettings, perUser: Int) {
            self.settings = settings
            self.perUser = perUser
        }

        var hasRoom: Bool { !settings.isSuspended && running < settings.concurrency }
    }

    /// The most absent owners that a queue remembers.
    private static let mostLeft = 1024

    private var queues: [String: Queue] = [:]
    /// In alphabetical order.
    private(set) var names: [String] = []
    private var hosts: HostPermits
    private let perHost: Int
    private let perHostAndUser: Int
    private var turn: Int64 = 0
    private var now: SteadyTime = 0
    /// Whether something changed since the last pass that may let a job start; most inputs change nothing of the kind.
    private var hasChanged = true
    /// Whether a queue became full, so that its owners keep no host from others any more.
    private var hasFilled = false

    /// A scheduler without queues; what hosts asked for is taken over from `old`.
    init(perHost: Int, perHostAndUser: Int, keeping old: Scheduler? = nil) {
        self.perHost = perHost
        self.perHostAndUser = perHostAndUser
        hosts = HostPermits(keeping: old?.hosts)
    }

    // MARK: - Queues

    func open(_ settings: QueueSettings, perUser: Int) {
        if let queue = queues[settings.name] {
            queue.settings = settings
            queue.perUser = perUser
        } else {
            queues[settings.name] = Queue(settings, perUser: perUser)
            names = queues.keys.sorted()
        }
        opened(nil)
    }

    func has(queue name: String) -> Bool { queues[name] != nil }
    func settings(of name: String) -> QueueSettings? { queues[name]?.settings }
    func perUser(of name: String) -> Int { queues[name]?.perUser ?? 1 }

    /// A host may have room for an owner that it had none for; nil where any may. Windows ask the store again only then: one
    /// owner may have very many jobs for a host without room, and another very many that start.
    private func opened(_ host: String?) {
        hasChanged = true
        for queue in queues.values { for share in queue.shares.values { share.window.reopen(host) } }
    }

    // MARK: - Ready jobs

    /// A job became ready; gives whether its queue is open.
    @discardableResult
    func insert(_ row: JobRow) -> Bool {
        guard let queue = queues[row.queue] else { return false }
        share(of: row.owner, in: queue, hasStored: false).window.insert(
            ReadyRow(position: row.position, host: row.host))
        hasChanged = true
        return true
    }

    /// The store has ready jobs of an owner that were never looked at.
    func expectStored(queue name: String, owner: UInt32) {
        guard let queue = queues[name] else { return }
        _ = share(of: owner, in: queue, hasStored: true)
        hasChanged = true
    }

    private func share(of owner: UInt32, in queue: Queue, hasStored: Bool) -> Share {
        if let share = queue.shares[owner] { return share }
        let share = Share(ReadyWindow(hasStored: hasStored))
        share.served = queue.left.removeValue(forKey: owner) ?? 0
        queue.shares[owner] = share
        return share
    }

    /// A job is no longer ready, and did not start.
    func remove(_ row: JobRow) {
        guard let queue = queues[row.queue], let share = queue.shares[row.owner] else { return }
        share.window.remove(row.position)
        drop(share, of: row.owner, in: queue)
        if let host = row.host { opened(host) }
        hasChanged = true
    }

    private func drop(_ share: Share, of owner: UInt32, in queue: Queue) {
        guard share.running == 0, share.window.isEmpty else { return }
        queue.shares[owner] = nil
        guard share.served > 0 else { return }
        queue.left[owner] = share.served
        guard queue.left.count > Self.mostLeft else { return }
        for (owner, _) in queue.left.sorted(by: { $0.value < $1.value }).prefix(Self.mostLeft / 2) {
            queue.left[owner] = nil
        }
    }

    // MARK: - Turns

    /// To be called before the first turn of a round.
    func beginTurns() {
        if hasFilled { opened(nil) }
        hasFilled = false
    }

    /// The next job that may start, with its slot and its permit; nil where none may.
    func next(in transaction: any JobTransaction, at now: SteadyTime) throws(StoreError) -> Turn? {
        self.now = now
        if hosts.endPauses(at: now) { opened(nil) }
        // A job may have waited for a host that a job of another queue did not use after all.
        while hasChanged {
            hasChanged = false
            for name in names {
                guard let turn = try next(in: name, transaction) else { continue }
                hasChanged = true
                return turn
            }
        }
        return nil
    }

    private func next(in name: String, _ transaction: any JobTransaction) throws(StoreError) -> Turn? {
        guard let queue = queues[name], queue.hasRoom, !queue.shares.isEmpty else { return nil }
        var passed: Set<UInt32> = []
        while let (owner, share) = fairest(in: queue, except: passed) {
            let row = try share.window.take(
                isOpen: { host in host.map { isOpen($0, for: owner) } ?? true },
                closedHosts: { closedHosts(for: owner) },
                read: { (after, excluding, limit) throws(StoreError) in
                    try transaction.ready(queue: name, owner: owner, after: after, excluding: excluding, limit: limit)
                })
            guard let row else {
                passed.insert(owner)
                drop(share, of: owner, in: queue)
                continue
            }
            turn += 1
            share.served = turn
            take(slotOf: queue, share)
            if let host = row.host {
                hosts.acquire(1, host, for: owner)
                // An owner with more permits than this one waits no longer for it.
                opened(host)
            }
            if !queue.hasRoom || share.running == queue.perUser {
                hasFilled = hasFilled || queue.shares.values.contains(where: \.window.waitsForHosts)
            }
            return Turn(row: row, queue: name, owner: owner)
        }
        return nil
    }

    private func take(slotOf queue: Queue, _ share: Share) {
        share.running += 1
        queue.running += 1
    }

    /// The owner who holds the fewest slots, among equals the one served longest ago.
    private func fairest(in queue: Queue, except passed: Set<UInt32>) -> (UInt32, Share)? {
        var best: (owner: UInt32, share: Share)?
        for (owner, share) in queue.shares where share.running < queue.perUser && !passed.contains(owner) {
            guard !share.window.isEmpty else { continue }
            if let best, (best.share.running, best.share.served, best.owner) < (share.running, share.served, owner) {
                continue
            }
            best = (owner, share)
        }
        return best
    }

    // MARK: - Slots and permits

    /// A run that was at work before a reset holds what it holds.
    func hold(_ run: LiveRun) {
        if run.hasSlot, let queue = queues[run.queue] {
            take(slotOf: queue, share(of: run.owner, in: queue, hasStored: false))
        }
        if let host = run.host { hosts.acquire(run.permits, host, for: run.owner) }
    }

    /// What a run held is free again.
    func release(_ run: LiveRun) {
        if run.hasSlot { releaseSlot(run.queue, run.owner) }
        if let host = run.host { release(run.permits, host, run.owner) }
    }

    func releaseSlot(_ name: String, _ owner: UInt32) {
        guard let queue = queues[name], let share = queue.shares[owner] else { return }
        queue.running -= 1
        share.running -= 1
        drop(share, of: owner, in: queue)
        hasChanged = true
    }

    func release(_ count: Int, _ host: String, _ owner: UInt32) {
        hosts.release(count, host, of: owner)
        opened(host)
    }

    /// Whether a job goes on in its slot; not where the queue was made smaller meanwhile.
    func mayKeepSlot(_ name: String, _ owner: UInt32) -> Bool {
        guard let queue = queues[name], let share = queue.shares[owner] else { return false }
        return queue.running <= queue.settings.concurrency && share.running <= queue.perUser
    }

    /// Permits for a run that has a slot: one, and as many more as are free and no job waits for; 0 where it has to wait. A run
    /// that retries what the host answered has waited as its own retry says, and so passes over its owner's pause.
    func acquire(_ host: String, for owner: UInt32, atMost count: Int, despitePause: Bool = false) -> Int {
        guard isOpen(host, for: owner, despitePause: despitePause) else { return 0 }
        hosts.acquire(1, host, for: owner)
        opened(host)
        return 1 + acquireSpare(host, for: owner, atMost: count - 1)
    }

    /// Further permits for a download over several connections, as many as are free and no job waits for.
    func acquireSpare(_ host: String, for owner: UInt32, atMost count: Int) -> Int {
        var spare = 0
        while spare < count, hosts.total(host) < perHost, hosts.count(host, of: owner) < perHostAndUser,
            !isAwaited(host)
        {
            hosts.acquire(1, host, for: owner)
            spare += 1
        }
        return spare
    }

    private func isOpen(_ host: String, for owner: UInt32, despitePause: Bool = false) -> Bool {
        guard hosts.total(host) < perHost else { return false }
        let own = hosts.count(host, of: owner)
        guard own < perHostAndUser, despitePause || !hosts.isPaused(host, for: owner, at: now) else { return false }
        guard own > 0 else { return true }
        return !queues.values.contains { queue in
            queue.hasRoom
                && queue.shares.contains { other, share in
                    other != owner && share.running < queue.perUser && hosts.count(host, of: other) < own
                        && share.window.waits(for: host) && !hosts.isPaused(host, for: other, at: now)
                }
        }
    }

    /// Whether a job at hand waits for a host and for nothing else.
    private func isAwaited(_ host: String) -> Bool {
        queues.values.contains { queue in
            queue.hasRoom
                && queue.shares.contains { _, share in
                    share.running < queue.perUser && share.window.waits(for: host)
                }
        }
    }

    private func closedHosts(for owner: UInt32) -> Set<String> {
        var closed = Set(hosts.paused(for: owner, at: now))
        for host in hosts.hosts where !isOpen(host, for: owner) { closed.insert(host) }
        return closed
    }

    /// A server asked an owner to leave a host alone until a time.
    func pause(_ host: String, for owner: UInt32, until time: SteadyTime) {
        hosts.pause(host, for: owner, until: time)
    }

    /// When a host can be asked again that an owner leaves alone.
    var nextPauseEnd: SteadyTime? { hosts.nextEnd }

    // MARK: - Looking

    /// Slots that are taken, by owner.
    func running(in name: String) -> [UInt32: Int] {
        queues[name]?.shares.mapValues(\.running).filter { $0.value > 0 } ?? [:]
    }

    /// Jobs in all windows.
    var windowCount: Int { queues.values.reduce(0) { $0 + $1.shares.values.reduce(0) { $0 + $1.window.count } } }
    /// Owners that have something in a queue, over all queues.
    var shareCount: Int { queues.values.reduce(0) { $0 + $1.shares.count } }
    var permits: [String: [UInt32: Int]] { hosts.shares }
    /// Hosts that owners leave alone.
    var pauseCount: Int { hosts.pauses.values.reduce(0) { $0 + $1.count } }
}
