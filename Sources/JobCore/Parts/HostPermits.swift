package import JobModel

/// The connections that each owner's runs hold to each host, and the hosts paused for an owner.
package struct HostPermits {
    package struct Pause: Hashable {
        fileprivate let host: String
        fileprivate let owner: UInt32
    }

    /// The most hosts paused for one owner; further hosts still get requests.
    private static let mostPaused = 1000

    /// By host and owner.
    package private(set) var uses: [String: [UInt32: Int]] = [:]
    /// The end of each pause by the steady clock; not in rows, so it survives a reset.
    package private(set) var pauses: [Pause: SteadyTime] = [:]
    private(set) var nextEnd: SteadyTime?

    /// Forgets all connections.
    mutating func releaseAll() { uses = [:] }

    func count(_ host: String, of owner: UInt32) -> Int { uses[host]?[owner] ?? 0 }
    func total(_ host: String) -> Int { uses[host]?.values.reduce(0, +) ?? 0 }

    mutating func acquire(_ count: Int, _ host: String, for owner: UInt32) {
        uses[host, default: [:]][owner, default: 0] += count
    }

    mutating func release(_ count: Int, _ host: String, of owner: UInt32) {
        guard let own = uses[host]?[owner] else { return }
        uses[host]?[owner] = own > count ? own - count : nil
        if uses[host]?.isEmpty == true { uses[host] = nil }
    }

    /// Pauses a host for an owner; the latest end counts.
    mutating func pause(_ host: String, for owner: UInt32, until time: SteadyTime) {
        let pause = Pause(host: host, owner: owner)
        guard pauses[pause] != nil || pauses.keys.count(where: { $0.owner == owner }) < Self.mostPaused else { return }
        pauses[pause] = max(time, pauses[pause] ?? time)
        nextEnd = min(nextEnd ?? time, time)
    }

    func isPaused(_ host: String, for owner: UInt32, at now: SteadyTime) -> Bool {
        pauses[Pause(host: host, owner: owner)].map { $0 > now } ?? false
    }

    /// Returns the hosts paused for an owner.
    func paused(for owner: UInt32, at now: SteadyTime) -> [String] {
        pauses.compactMap { pause, end in pause.owner == owner && end > now ? pause.host : nil }
    }

    /// Drops expired pauses and returns whether there were any.
    mutating func endPauses(at now: SteadyTime) -> Bool {
        guard let nextEnd, nextEnd <= now else { return false }
        let before = pauses.count
        pauses = pauses.filter { $0.value > now }
        self.nextEnd = pauses.values.min()
        return pauses.count < before
    }
}
