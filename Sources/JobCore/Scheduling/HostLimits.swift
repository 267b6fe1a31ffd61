import JobModel

/// How many jobs of each owner run under each concurrency key, and which hosts jobs have to back off from.
struct HostLimits {
    /// A key that a job runs under.
    struct Permit: Hashable {
        let key: ConcurrencyKey
        let owner: UInt32
        /// Bytes that an open list keeps in memory; 0 for others.
        let bytes: Int
    }

    private struct Usage {
        var total = 0
        var byOwner: [UInt32: Int] = [:]
        var bytes: [UInt32: Int] = [:]
    }

    /// Bytes of specs and results from which on an owner opens no further list.
    private static let openListBytes = 8 << 20
    /// The same for lists at one depth below others.
    private static let nestedListBytes = 512 << 10
    /// Timers that run at a time.
    private static let openTimers = 100_000
    /// The most hosts to back off from at a time for what jobs of one owner were answered; a further one still gets requests.
    /// Whoever looks for the next job looks at each host that jobs wait for.
    private static let mostBackedOff = 1000

    var perHost: Int
    var openLists: Int
    private var usage: [ConcurrencyKey: Usage] = [:]
    /// The hosts to back off from, with the owner whose job was told so first.
    private var backedOff: [ConcurrencyKey: UInt32] = [:]
    private var backedOffByOwner: [UInt32: Int] = [:]
    /// How many run under any key.
    private(set) var permits = 0

    init(perHost: Int, openLists: Int) {
        self.perHost = perHost
        self.openLists = openLists
    }

    /// Whether one more job of `owner` may run under `key`.
    func isOpen(_ key: ConcurrencyKey, for owner: UInt32) -> Bool {
        switch key {
        case .none: return true
        case .lists:
            guard let usage = usage[key] else { return openLists > 0 }
            return usage.total < openLists && usage.byOwner[owner, default: 0] < max(1, openLists * 3 / 4)
                && usage.bytes[owner, default: 0] < Self.openListBytes
        case .nestedLists: return usage[key]?.bytes[owner] ?? 0 < Self.nestedListBytes
        case .timers:
            guard let usage = usage[key] else { return true }
            return usage.total < Self.openTimers
                && usage.byOwner[owner, default: 0] < Self.openTimers * 3 / 4
        case .host:
            return usage[key]?.total ?? 0 < perHost && backedOff[key] == nil
        case .hostAgain:
            return usage[key.counted]?.total ?? 0 < perHost
        }
    }

    func count(_ key: ConcurrencyKey, of owner: UInt32) -> Int { usage[key.counted]?.byOwner[owner] ?? 0 }

    mutating func acquire(_ key: ConcurrencyKey, for owner: UInt32, bytes: Int = 0) -> Permit? {
        guard key != .none else { return nil }
        let key = key.counted
        permits += 1
        usage[key, default: Usage()].total += 1
        usage[key]?.byOwner[owner, default: 0] += 1
        if bytes > 0 { usage[key]?.bytes[owner, default: 0] += bytes }
        return Permit(key: key, owner: owner, bytes: bytes)
    }

    mutating func release(_ permit: Permit) {
        guard var usage = usage[permit.key] else { return }
        permits -= 1
        usage.total -= 1
        usage.byOwner[permit.owner] =
            (usage.byOwner[permit.owner] ?? 0) > 1 ? usage.byOwner[permit.owner, default: 1] - 1 : nil
        let bytes = usage.bytes[permit.owner, default: 0] - permit.bytes
        usage.bytes[permit.owner] = bytes > 0 ? bytes : nil
        self.usage[permit.key] = usage.total > 0 ? usage : nil
    }

    /// Backs off from a host until ``reopen(_:)``, as a job of `owner` was told to; false where there are too many such hosts.
    mutating func backOff(_ key: ConcurrencyKey, for owner: UInt32) -> Bool {
        if backedOff[key] != nil { return true }
        guard backedOffByOwner[owner, default: 0] < Self.mostBackedOff else { return false }
        backedOff[key] = owner
        backedOffByOwner[owner, default: 0] += 1
        return true
    }

    func isBackedOff(_ key: ConcurrencyKey) -> Bool { backedOff[key] != nil }

    mutating func reopen(_ key: ConcurrencyKey) {
        guard let owner = backedOff.removeValue(forKey: key) else { return }
        let left = backedOffByOwner[owner, default: 0] - 1
        backedOffByOwner[owner] = left > 0 ? left : nil
    }

    /// For tests and the simulator.
    var shares: [ConcurrencyKey: [UInt32: Int]] { usage.mapValues(\.byOwner) }
    var totals: [ConcurrencyKey: Int] { usage.mapValues(\.total) }
    func total(_ key: ConcurrencyKey) -> Int { usage[key]?.total ?? 0 }
}
