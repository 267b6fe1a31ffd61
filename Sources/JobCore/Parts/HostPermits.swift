import JobModel

/// How many connections each owner's runs have to each host, and which hosts an owner leaves alone.
struct HostPermits {
    private struct Use {
        var total = 0
        var byOwner: [UInt32: Int] = [:]
    }

    /// Hosts that one owner leaves alone at a time; a further one still gets requests.
    private static let mostPaused = 1000

    private var uses: [String: Use] = [:]
    /// Until when, by the steady clock. It was learned outside, so it survives a reset.
    private(set) var pauses: [String: [UInt32: SteadyTime]] = [:]
    /// When the first pause ends.
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

    /// An owner leaves a host alone until a time; of several the latest counts.
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

    /// The hosts that an owner leaves alone.
    func paused(for owner: UInt32, at now: SteadyTime) -> [String] {
        pauses.compactMap { host, owners in (owners[owner] ?? now) > now ? host : nil }
    }

    /// Drops the pauses that are over; whether there were any.
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
