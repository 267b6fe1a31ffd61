import JobModel

/// Decides who runs: the only gate there is. It owns the queues with their slots, the windows of ready jobs by queue and
/// owner, and the limits of hosts.
///
/// A free slot goes to the owner who has work that can start and holds the fewest slots of the queue, among equals to
/// the one served longest ago. A host's limit is shared in the same way: an owner with more of its permits waits for
/// one with fewer.
final class Scheduler {
    /// A slot of a queue, from ``next(in:)`` until ``release(_:)``.
    struct Slot: Hashable {
        let queue: String
        let owner: UInt32
    }

    /// A job whose turn it is, with what it was given.
    struct Turn {
        let entry: ReadyWindow.Entry
        let slot: Slot
        let permit: HostLimits.Permit?
    }

    /// Ready jobs to be read from the store.
    struct Request {
        let queue: String
        let owner: UInt32
        let what: ReadyWindow.Request
        var after: ReadyPosition? {
            switch what {
            case .more(let position), .around(_, let position): position
            }
        }
        var excluding: Set<String> { if case .around(let hosts, _) = what { hosts } else { [] } }
        var limit: Int { if case .more = what { ReadyWindow.size } else { ReadyWindow.aroundSize } }
    }

    private final class Share {
        let window: ReadyWindow
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
    private var hosts: HostLimits
    private var turn: Int64 = 0
    private(set) var paused: Set<UInt32> = []
    /// Whether something changed since the last pass that may let a job start; most inputs change nothing of the kind.
    private var hasChanged = true
    /// Whether something changed since jobs were last read that may make another read necessary.
    private var mayNeedJobs = true

    init(perHost: Int, openLists: Int) {
        hosts = HostLimits(perHost: perHost, openLists: openLists)
    }

    // MARK: - Queues

    func open(_ settings: QueueSettings, perUser: Int) {
        if let queue = queues[settings.name] {
            queue.settings = settings
            queue.perUser = perUser
            changed()
        } else {
            queues[settings.name] = Queue(settings, perUser: perUser)
            names = queues.keys.sorted()
        }
    }

    func configure(perHost: Int, openLists: Int) {
        hosts.perHost = perHost
        hosts.openLists = openLists
        changed()
    }

    private func changed() {
        hasChanged = true
        mayNeedJobs = true
    }

    func has(queue name: String) -> Bool { queues[name] != nil }
    func settings(of name: String) -> QueueSettings? { queues[name]?.settings }
    func perUser(of name: String) -> Int { queues[name]?.perUser ?? 1 }

    // MARK: - Ready jobs

    /// Starts nothing of an owner until ``resume(_:)``.
    func pause(_ owner: UInt32) { paused.insert(owner) }

    func resume(_ owner: UInt32) {
        if paused.remove(owner) != nil { changed() }
    }

    /// Inserts a job that became ready.
    func insert(_ entry: ReadyWindow.Entry, queue name: String, owner: UInt32) {
        guard let queue = queues[name] else { return }
        share(of: owner, in: queue, horizon: .end).window.insert(entry)
        changed()
    }

    /// Whether ``insert(_:queue:owner:)`` would do nothing with a job, as others of its owner come before it.
    func leavesInStore(_ position: ReadyPosition, queue name: String, owner: UInt32) -> Bool {
        queues[name]?.shares[owner]?.window.leavesInStore(position) ?? false
    }

    /// The store has ready jobs of `owner` that were never read. Called when the daemon starts; from then on, whatever
    /// becomes ready is inserted.
    func expectStored(queue name: String, owner: UInt32) {
        guard let queue = queues[name] else { return }
        _ = share(of: owner, in: queue, horizon: .start)
        changed()
    }

    private func share(of owner: UInt32, in queue: Queue, horizon: ReadyWindow.Horizon) -> Share {
        if let share = queue.shares[owner] { return share }
        let share = Share(ReadyWindow(horizon: horizon))
        share.served = queue.left.removeValue(forKey: owner) ?? 0
        queue.shares[owner] = share
        return share
    }

    func remove(_ id: JobID, queue name: String, owner: UInt32) {
        guard let queue = queues[name], let share = queue.shares[owner] else { return }
        share.window.remove(id)
        drop(share, of: owner, in: queue)
        // Others may wait for what it had.
        changed()
    }

    private func drop(_ share: Share, of owner: UInt32, in queue: Queue) {
        guard share.running == 0, share.window.isEmpty else { return }
        queue.shares[owner] = nil
        guard share.served > 0 else { return }
        queue.left[owner] = share.served
        if queue.left.count > Self.mostLeft {
            let oldest = queue.left.sorted { $0.value < $1.value }.prefix(Self.mostLeft / 2)
            for (owner, _) in oldest { queue.left[owner] = nil }
        }
    }

    // MARK: - Turns

    /// Calls `start` with each job that can start, in all queues.
    ///
    /// Repeated after each pass in which something started or was given back: a job may have waited for a host that a
    /// job of another queue did not use after all. The number of slots bounds this: each turn fills one, or ends a job.
    func startAll(_ start: (Turn) -> Void) {
        while hasChanged {
            hasChanged = false
            for name in names {
                while let turn = next(in: name) {
                    start(turn)
                    if names.count > 1 { hasChanged = true }
                }
            }
        }
    }

    /// Gives a free slot of a queue to the job whose turn it is; nil where none can start.
    func next(in name: String) -> Turn? {
        guard let queue = queues[name], queue.hasRoom else { return nil }
        var passed: Set<UInt32> = []
        while let (owner, share) = fairest(in: queue, except: passed) {
            if let entry = share.window.first(where: { isOpen($0, for: owner) }) {
                share.window.pop(entry)
                turn += 1
                mayNeedJobs = true
                share.served = turn
                share.running += 1
                queue.running += 1
                let permit = hosts.acquire(entry.key, for: owner, bytes: entry.bytes)
                return Turn(entry: entry, slot: Slot(queue: name, owner: owner), permit: permit)
            }
            passed.insert(owner)
        }
        return nil
    }

    /// The owner who holds the fewest slots, among equals the one served longest ago.
    private func fairest(in queue: Queue, except passed: Set<UInt32>) -> (UInt32, Share)? {
        var best: (owner: UInt32, share: Share)?
        for (owner, share) in queue.shares where share.running < queue.perUser && !passed.contains(owner) {
            guard share.window.count > 0, !paused.contains(owner) else { continue }
            if let best, (best.share.running, best.share.served, best.owner) < (share.running, share.served, owner) {
                continue
            }
            best = (owner, share)
        }
        return best
    }

    /// Whether a job of `owner` may start under `key`: there is room, and no owner with fewer of its permits waits for
    /// one. `free` counts as a queue with a free slot for anybody, whether it has one or not: whoever gives one back may
    /// get it.
    private func isOpen(_ key: ConcurrencyKey, for owner: UInt32, whereFree free: Queue? = nil) -> Bool {
        guard hosts.isOpen(key, for: owner) else { return false }
        guard case .host = key else { return true }
        let own = hosts.count(key, of: owner)
        guard own > 0 else { return true }
        for queue in queues.values where queue.hasRoom || queue === free {
            for (other, share) in queue.shares
            where other != owner && (queue === free || share.running < queue.perUser) {
                if hosts.count(key, of: other) < own, !paused.contains(other), share.window.waits(for: key) {
                    return false
                }
            }
        }
        return true
    }

    /// Whether a job goes on in its slot; not where the queue was made smaller meanwhile.
    func mayKeep(_ slot: Slot) -> Bool {
        guard let queue = queues[slot.queue], let share = queue.shares[slot.owner] else { return false }
        return queue.running <= queue.settings.concurrency && share.running <= queue.perUser
    }

    /// Gives a slot back.
    func release(_ slot: Slot) {
        guard let queue = queues[slot.queue], let share = queue.shares[slot.owner] else { return }
        queue.running -= 1
        share.running -= 1
        drop(share, of: slot.owner, in: queue)
        changed()
    }

    /// Gives back a permit, which jobs of every queue may wait for.
    func release(_ permit: HostLimits.Permit) {
        hosts.release(permit)
        changed()
    }

    /// A further key for a job that has a slot or needs none; nil where it has to wait for it.
    func acquire(_ key: ConcurrencyKey, for owner: UInt32, bytes: Int = 0) -> HostLimits.Permit? {
        guard isOpen(key, for: owner) else { return nil }
        return acquireAnyway(key, for: owner, bytes: bytes)
    }

    /// The same for a job that must not wait: it gets a permit, however many there are.
    func acquireAnyway(_ key: ConcurrencyKey, for owner: UInt32, bytes: Int = 0) -> HostLimits.Permit? {
        // Owners with more of its permits than this one waited for this one.
        changed()
        return hosts.acquire(key, for: owner, bytes: bytes)
    }

    /// Further permits for a job that runs with `permit`, for a download over several connections: as many as are free and nobody
    /// waits for, at most `count`.
    func acquireSpare(_ count: Int, beside permit: HostLimits.Permit) -> [HostLimits.Permit] {
        guard case .host = permit.key, !isAwaited(permit.key) else { return [] }
        var spare: [HostLimits.Permit] = []
        while spare.count < count, hosts.isOpen(permit.key, for: permit.owner),
            let permit = hosts.acquire(permit.key, for: permit.owner)
        {
            spare.append(permit)
        }
        return spare
    }

    /// Whether a job of any owner waits for a key and for nothing else.
    private func isAwaited(_ key: ConcurrencyKey) -> Bool {
        queues.values.contains { queue in
            queue.hasRoom
                && queue.shares.contains { owner, share in
                    share.running < queue.perUser && !paused.contains(owner) && share.window.waits(for: key)
                }
        }
    }

    func backOff(host: String, for owner: UInt32) -> Bool {
        mayNeedJobs = true
        return hosts.backOff(.host(host), for: owner)
    }

    func isBackedOff(_ key: ConcurrencyKey) -> Bool { hosts.isBackedOff(key) }

    func reopen(host: String) {
        hosts.reopen(.host(host))
        changed()
    }

    // MARK: - Reading on

    /// What to read of all queues' ready jobs now; each is under way from then on.
    func requests() -> [Request] {
        guard mayNeedJobs else { return [] }
        mayNeedJobs = false
        return names.flatMap(requests)
    }

    /// What to read of the queue's ready jobs now; each is under way from then on.
    func requests(in name: String) -> [Request] {
        guard let queue = queues[name] else { return [] }
        var requests: [Request] = []
        for owner in queue.shares.keys.sorted() {
            guard let share = queue.shares[owner] else { continue }
            // Also where no slot is free: the next one may be this owner's, and would go to another if none of their
            // jobs were here then.
            let hasRoom = !queue.settings.isSuspended && share.running < queue.perUser
            // While no slot is free, a host whose next permit is due to another owner counts as closed to this one, however
            // much room it has. In a slot that is free now, any job that may start does.
            let free = queue.hasRoom ? nil : queue
            if let what = share.window.nextRequest(
                hasRoom: hasRoom, isOpen: { isOpen($0, for: owner, whereFree: free) })
            {
                requests.append(Request(queue: name, owner: owner, what: what))
            }
        }
        return requests
    }

    /// Inserts what a read gave. `last` is the position of the last row, also if that is left out.
    func received(_ request: Request, _ entries: [ReadyWindow.Entry], rows: Int, last: ReadyPosition?) {
        guard let queue = queues[request.queue], let share = queue.shares[request.owner] else { return }
        changed()
        share.window.received(entries, isLast: rows < request.limit, last: last)
        drop(share, of: request.owner, in: queue)
    }

    func readFailed(_ request: Request) {
        queues[request.queue]?.shares[request.owner]?.window.readFailed()
        mayNeedJobs = true
    }

    // MARK: - Looking

    /// Slots that are taken, by owner.
    func running(in name: String) -> [UInt32: Int] {
        queues[name]?.shares.mapValues(\.running).filter { $0.value > 0 } ?? [:]
    }

    /// Slots that are taken, in all queues.
    var running: Int { queues.values.reduce(0) { $0 + $1.running } }
    /// Entries in all windows.
    var windowEntries: Int { queues.values.reduce(0) { $0 + $1.shares.values.reduce(0) { $0 + $1.window.count } } }
    /// Owners that have something in a queue, over all queues.
    var owners: Int { queues.values.reduce(0) { $0 + $1.shares.count } }
    var keys: [ConcurrencyKey: Int] { hosts.totals }
    var shares: [ConcurrencyKey: [UInt32: Int]] { hosts.shares }
    var openLists: Int { hosts.total(.lists) }
    var permits: Int { hosts.permits }
}
