package import JobModel

/// The loaded ready jobs of one owner in one queue: all up to a horizon, and later ones whose hosts have room.
/// All others are only in the store.
package struct ReadyWindow {
    /// Jobs per read.
    static let size = 64
    /// Jobs per read past jobs whose hosts are full.
    static let aroundSize = 16
    /// Behind all jobs.
    private static let end = ReadyPosition(priority: .min, id: .max)

    /// In starting order.
    package private(set) var entries: [ReadyRow] = []
    /// All jobs up to here are loaded; nil if none are.
    private var horizon: ReadyPosition?
    /// All jobs that are not loaded are for these hosts, as a read has found; nil if unknown.
    private var hostsBehind: Set<String>?

    /// Creates the window of an owner; `hasStored` if the store has ready jobs not read yet.
    init(hasStored: Bool) { horizon = hasStored ? nil : Self.end }

    /// Whether neither the window nor the store has jobs.
    var isEmpty: Bool { entries.isEmpty && horizon == Self.end }
    /// The first loaded jobs.
    func first(_ count: Int) -> [JobID] { entries.prefix(max(0, count)).map(\.position.id) }
    /// Returns whether a loaded job waits for a host.
    func waits(for host: String) -> Bool { entries.contains { $0.host == host } }

    /// Adds a job that became ready; a job after the horizon stays in the store.
    mutating func insert(_ row: ReadyRow) {
        guard !isBehind(row) else {
            if row.host.map({ hostsBehind?.contains($0) == true }) != true { hostsBehind = nil }
            return
        }
        let index = entries.firstIndex { row.position <= $0.position } ?? entries.endIndex
        guard index == entries.endIndex || entries[index].position != row.position else { return }
        entries.insert(row, at: index)
        guard entries.count > 2 * Self.size else { return }
        entries.removeSubrange(Self.size...)
        hostsBehind = nil
        horizon = entries.last?.position
    }

    mutating func remove(_ position: ReadyPosition) { entries.removeAll { $0.position == position } }

    /// Takes the first job that may start.
    /// `isOpen` returns whether a host has room, `closedHosts` the full hosts, and `read` ready jobs from the store.
    mutating func take(
        isOpen: (String?) -> Bool, closedHosts: () -> Set<String>,
        read: (ReadyPosition?, Set<String>, Int) throws(StoreError) -> [ReadyRow]
    ) throws(StoreError) -> ReadyRow? {
        while true {
            if let row = takeFirst(isOpen) { return row }
            guard horizon != Self.end else { return nil }
            guard entries.count < Self.size else { break }
            let rows = try read(horizon, [], Self.size)
            let last = rows.count == Self.size ? rows.last?.position ?? Self.end : Self.end
            // This read may return jobs that a read past full hosts has returned.
            entries = entries.filter { !isBehind($0) } + rows + entries.filter { $0.position > last }
            horizon = last
        }
        let hosts = closedHosts()
        // One owner may have very many jobs for a full host, which no read should pass over again and again.
        if let hostsBehind, hostsBehind.isSubset(of: hosts) { return nil }
        let around = try read(horizon, hosts, Self.aroundSize)
        entries = entries.filter { !isBehind($0) } + around
        hostsBehind = around.count < Self.aroundSize ? hosts : nil
        return takeFirst(isOpen)
    }

    private func isBehind(_ row: ReadyRow) -> Bool { horizon.map { row.position > $0 } ?? true }

    /// Neighbours often have the same host, which is asked about once.
    private mutating func takeFirst(_ isOpen: (String?) -> Bool) -> ReadyRow? {
        var closed: String?
        let index = entries.firstIndex { row in
            if let closed, row.host == closed { return false }
            if isOpen(row.host) { return true }
            closed = row.host
            return false
        }
        return index.map { entries.remove(at: $0) }
    }
}
