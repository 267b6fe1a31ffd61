import JobModel

/// The connections that each owner's runs hold to each host, and the hosts paused for an owner.
struct HostPermits {
    private struct Use {
        var total = 0
        var byOwner: [UInt32: Int] = [:]
    }

    /// The most hosts paused for one owner; further hosts still get requests.
    private static let mostPaused = 1000

    private var uses: [String: Use] = [:]
    /// The end of each pause by the steady clock; not in rows, so it survives a reset.
    private(set) var pauses: [String: [UInt32: SteadyTime]] = [:]
    private(set) var nextEnd: SteadyTime?

    init(keeping old: HostPermits? = nil) {
        pauses = old?.pauses ?? [:]
        nextEnd = old?.nextEnd
    }

    func count(_ host: String, of owner: UInt32) -> Int { uses[host]?.byOwner[owner] ?? 0 }
    func total(_ host: String) -> Int { uses[host]?.total ?? 0 }
    var hosts: some Sequence<String> { uses.keys }

    mutating func acquire(_ count: Int, _ host: String, for owner: UInt32) {
        uses[host, default: Use()].total += count
        uses[host]?.byOwner[owner, default: 0] += count
    }

    mutating func release(_ count: Int, _ host: String, of owner: UInt32) {
        guard var use = uses[host] else { return }
        use.total -= count
        let own = use.byOwner[owner, default: 0] - count
        use.byOwner[owner] = own > 0 ? own : nil
        uses[host] = use.total > 0 ? use : nil
    }

    /// Pauses a host for an owner; the latest end counts.
    mutating func pause(_ host: String, for owner: UInt32, until time: SteadyTime) {
        guard pauses[host]?[owner] != nil || pauses.values.count(where: { $0[owner] != nil }) < Self.mostPaused else {
            return
        }
        pauses[host, default: [:]][owner] = max(time, pauses[host]?[owner] ?? time)
        nextEnd = min(nextEnd ?? time, time)
    }

    func isPaused(_ host: String, for owner: UInt32, at now: SteadyTime) -> Bool {
        (pauses[host]?[owner]).map { $0 > now } ?? false
    }

    /// Returns the hosts paused for an owner.
    func paused(for owner: UInt32, at now: SteadyTime) -> [String] {
        pauses.compactMap { host, owners in (owners[owner] ?? now) > now ? host : nil }
    }

    /// Drops expired pauses and returns whether there were any.
    mutating func endPauses(at now: SteadyTime) -> Bool {
        guard let nextEnd, nextEnd <= now else { return false }
        var hasEnded = false
        for (host, owners) in pauses {
            let left = owners.filter { $0.value > now }
            if left.count < owners.count { hasEnded = true }
            pauses[host] = left.isEmpty ? nil : left
        }
        self.nextEnd = pauses.values.compactMap { $0.values.min() }.min()
        return hasEnded
    }

    var shares: [String: [UInt32: Int]] { uses.mapValues(\.byOwner) }
}
