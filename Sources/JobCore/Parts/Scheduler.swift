import JobModel

/// Decides which ready job starts next: queue slots, fair shares among owners, and host permits.
///
/// A free slot goes to the owner with startable work who holds the fewest slots of the queue; ties go to the owner
/// served longest ago. Host permits are shared the same way: an owner with more of them waits for an owner with fewer.
package final class Scheduler {
    /// The next job to start, with its slot and permit taken.
    struct Turn {
        let row: ReadyRow
        let queue: String
        let owner: UInt32
    }

    package final class Share {
        package fileprivate(set) var window: ReadyWindow
        package fileprivate(set) var running = 0

        fileprivate init(_ window: ReadyWindow) { self.window = window }
    }

    package final class Queue {
        fileprivate var settings: QueueSettings
        fileprivate var perUser: Int
        fileprivate var takesJobs: Bool
        fileprivate var running = 0
        package fileprivate(set) var shares: [UInt32: Share] = [:]
        /// The turns in which owners were last served, also of those who have no jobs at present.
        fileprivate var served: [UInt32: Int64] = [:]

        fileprivate init(_ settings: QueueSettings, perUser: Int, takesJobs: Bool) {
            (self.settings, self.perUser, self.takesJobs) = (settings, perUser, takesJobs)
        }

        fileprivate var hasRoom: Bool { !settings.isSuspended && running < settings.concurrency }

        /// When its start rate allows the next start; nil for now.
        fileprivate func nextStart(_ starts: [SteadyTime]?, at now: SteadyTime) -> SteadyTime? {
            guard let rate = settings.startRate, let starts, starts.count >= rate.count else { return nil }
            let next = starts[starts.count - rate.count].saturatingAdding(Int64((rate.seconds * 1000).rounded(.up)))
            return next > now ? next : nil
        }
    }

    /// The most owners per queue whose turns are remembered.
    private static let mostServed = 1024

    package private(set) var queues: [String: Queue] = [:]
    /// In alphabetical order.
    package private(set) var names: [String] = []
    package private(set) var hosts: HostPermits
    /// The last starts in queues with a start rate, at most ``StartRate/most`` of each; not in rows, so they survive a reset.
    private var starts: [String: [SteadyTime]]
    /// When a start rate lets a waiting job start.
    private var nextStart: SteadyTime?
    private let perHost: Int
    private let perHostAndUser: Int
    private var turn: Int64 = 0
    private var now: SteadyTime = 0
    /// Whether a change since the last pass may let a job start; most inputs change nothing relevant.
    private var hasChanged = true

    /// Creates a scheduler without queues, with the host pauses of `old`.
    init(perHost: Int, perHostAndUser: Int, keeping old: Scheduler? = nil) {
        self.perHost = perHost
        self.perHostAndUser = perHostAndUser
        hosts = old?.hosts ?? HostPermits()
        hosts.releaseAll()
        starts = old?.starts ?? [:]
    }

    // MARK: - Queues

    func open(_ settings: QueueSettings, perUser: Int, takesJobs: Bool) {
        if let queue = queues[settings.name] {
            (queue.settings, queue.perUser, queue.takesJobs) = (settings, perUser, takesJobs)
        } else {
            queues[settings.name] = Queue(settings, perUser: perUser, takesJobs: takesJobs)
            names = queues.keys.sorted()
        }
        hasChanged = true
    }

    func has(queue name: String) -> Bool { queues[name] != nil }
    func settings(of name: String) -> QueueSettings? { queues[name]?.settings }
    func perUser(of name: String) -> Int { queues[name]?.perUser ?? 1 }
    /// Returns whether a queue takes new jobs. A dictionary finds a name in another Unicode normal form too, and the store
    /// does not.
    func takesJobs(_ name: String) -> Bool {
        queues[name].map { $0.takesJobs && $0.settings.name.hasSameBytes(as: name) } ?? false
    }

    // MARK: - Ready jobs

    /// Adds a job that became ready; returns whether its queue is open.
    @discardableResult
    func insert(_ row: JobRow) -> Bool {
        guard let queue = queues[row.queue] else { return false }
        share(of: row.owner, in: queue, hasStored: false).window.insert(
            ReadyRow(position: row.position, host: row.host))
        hasChanged = true
        return true
    }

    /// Notes that the store may have other ready jobs of an owner than those loaded.
    func rereadStored(queue name: String, owner: UInt32, hasJobs: Bool) {
        guard let queue = queues[name], hasJobs || queue.shares[owner] != nil else { return }
        let share = share(of: owner, in: queue, hasStored: hasJobs)
        share.window = ReadyWindow(hasStored: hasJobs)
        drop(share, of: owner, in: queue)
        hasChanged = true
    }

    /// Loaded jobs that may start next, to be read together.
    var candidates: [JobID] {
        guard hasChanged else { return [] }
        return queues.values.filter(\.hasRoom).flatMap { queue in
            queue.shares.values.flatMap { share in
                share.window.first(min(queue.settings.concurrency - queue.running, queue.perUser - share.running))
            }
        }
    }

    private func share(of owner: UInt32, in queue: Queue, hasStored: Bool) -> Share {
        if let share = queue.shares[owner] { return share }
        let share = Share(ReadyWindow(hasStored: hasStored))
        queue.shares[owner] = share
        return share
    }

    /// Removes a job that is no longer ready and did not start.
    func remove(_ row: JobRow) {
        guard let queue = queues[row.queue], let share = queue.shares[row.owner] else { return }
        share.window.remove(row.position)
        drop(share, of: row.owner, in: queue)
        hasChanged = true
    }

    private func drop(_ share: Share, of owner: UInt32, in queue: Queue) {
        if share.running == 0, share.window.isEmpty { queue.shares[owner] = nil }
    }

    // MARK: - Turns

    /// Returns the next job that may start, with its slot and permit.
    func next(in transaction: any JobTransaction, at now: SteadyTime) throws(StoreError) -> Turn? {
        self.now = now
        if hosts.endPauses(at: now) { hasChanged = true }
        if let next = nextStart, next <= now {
            nextStart = nil
            hasChanged = true
        }
        // A job may have waited for a host that another queue's job left unused.
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
        if let next = queue.nextStart(starts[name], at: now) {
            nextStart = min(nextStart ?? next, next)
            return nil
        }
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
            noteTurn(of: owner, in: queue)
            take(slotOf: queue, share)
            noteStart(in: queue)
            if let host = row.host { hosts.acquire(1, host, for: owner) }
            return Turn(row: row, queue: name, owner: owner)
        }
        return nil
    }

    /// Takes back a turn whose job cannot start.
    func giveBack(_ turn: Turn) {
        if queues[turn.queue]?.settings.startRate != nil { _ = starts[turn.queue]?.popLast() }
        if let host = turn.row.host { release(1, host, turn.owner) }
        releaseSlot(turn.queue, turn.owner)
    }

    private func noteTurn(of owner: UInt32, in queue: Queue) {
        turn += 1
        queue.served[owner] = turn
        guard queue.served.count > Self.mostServed else { return }
        for (owner, _) in queue.served.sorted(by: { $0.value < $1.value }).prefix(Self.mostServed / 2) {
            queue.served[owner] = nil
        }
    }

    private func noteStart(in queue: Queue) {
        guard let rate = queue.settings.startRate else { return }
        var known = starts.removeValue(forKey: queue.settings.name) ?? []
        if known.count >= rate.count { known.removeFirst(known.count - rate.count + 1) }
        known.append(now)
        starts[queue.settings.name] = known
    }

    private func take(slotOf queue: Queue, _ share: Share) {
        share.running += 1
        queue.running += 1
    }

    /// Returns the owner with the fewest slots; ties go to the owner served longest ago.
    private func fairest(in queue: Queue, except passed: Set<UInt32>) -> (key: UInt32, value: Share)? {
        func rank(_ owner: UInt32, _ share: Share) -> (Int, Int64, UInt32) {
            (share.running, queue.served[owner] ?? 0, owner)
        }
        return queue.shares.lazy.filter { owner, share in
            share.running < queue.perUser && !passed.contains(owner) && !share.window.isEmpty
        }.min { rank($0.key, $0.value) < rank($1.key, $1.value) }
    }

    // MARK: - Slots and permits

    /// Restores the slot and permits of a live run after a reset.
    func hold(_ run: LiveRun) {
        if run.hasSlot, let queue = queues[run.queue] {
            take(slotOf: queue, share(of: run.owner, in: queue, hasStored: false))
        }
        if let host = run.host { hosts.acquire(run.permits, host, for: run.owner) }
    }

    /// Frees the slot and permits of a run.
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
        hasChanged = true
    }

    /// Starts the next link of a job in its slot; returns false if the queue shrank meanwhile, or its start rate forbids it.
    func keepSlot(_ name: String, _ owner: UInt32, at now: SteadyTime) -> Bool {
        guard let queue = queues[name], let share = queue.shares[owner] else { return false }
        guard queue.running <= queue.settings.concurrency, share.running <= queue.perUser else { return false }
        self.now = max(self.now, now)
        guard queue.nextStart(starts[name], at: now) == nil else { return false }
        noteStart(in: queue)
        return true
    }

    /// Takes permits for a run with a slot: one, plus free ones that no job waits for; returns 0 if it must wait.
    /// A retry after the host's answer has waited as its own policy says, so it ignores its owner's pause.
    func acquire(_ host: String, for owner: UInt32, atMost count: Int, despitePause: Bool = false) -> Int {
        guard isOpen(host, for: owner, despitePause: despitePause) else { return 0 }
        hosts.acquire(1, host, for: owner)
        hasChanged = true
        return 1 + acquireSpare(host, for: owner, atMost: count - 1)
    }

    /// Takes further permits for a download over several connections, if free and no job waits for them.
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
        return !isAwaited(host) { other in
            other != owner && hosts.count(host, of: other) < own && !hosts.isPaused(host, for: other, at: now)
        }
    }

    /// Returns whether a loaded job of an owner that `counts` waits only for a host.
    private func isAwaited(_ host: String, by counts: (UInt32) -> Bool = { _ in true }) -> Bool {
        queues.values.contains { queue in
            queue.hasRoom
                && queue.shares.contains { owner, share in
                    // The window of the owner who asks is in use.
                    counts(owner) && share.running < queue.perUser && share.window.waits(for: host)
                }
        }
    }

    private func closedHosts(for owner: UInt32) -> Set<String> {
        var closed = Set(hosts.paused(for: owner, at: now))
        for host in hosts.uses.keys where !isOpen(host, for: owner) { closed.insert(host) }
        return closed
    }

    /// Pauses a host for an owner until a time.
    func pause(_ host: String, for owner: UInt32, until time: SteadyTime) {
        hosts.pause(host, for: owner, until: time)
    }

    /// When the first pause ends, or a start rate lets a job start.
    var nextOpening: SteadyTime? { [hosts.nextEnd, nextStart].compactMap(\.self).min() }
}
