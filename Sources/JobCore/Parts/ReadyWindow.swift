import JobModel

/// The loaded ready jobs of one owner in one queue: the first ones, and later ones whose hosts have room.
/// All others are only in the store.
struct ReadyWindow {
    /// Jobs per read.
    static let size = 64
    /// Jobs per read past jobs whose hosts are full.
    static let aroundSize = 16

    private enum Horizon: Hashable {
        case start
        /// The store has jobs after this position.
        case after(ReadyPosition)
        case end
    }

    /// In starting order, none after the horizon.
    private var entries: [ReadyRow] = []
    /// Some jobs after the horizon.
    private var around: [ReadyRow] = []
    private var horizon: Horizon
    /// All jobs after the horizon but those of ``around`` are for these hosts, as a read has found; nil if unknown.
    private var hostsBehind: Set<String>?
    private var hosts: [String: Int] = [:]

    /// Creates the window of an owner; `hasStored` if the store has ready jobs not read yet.
    init(hasStored: Bool) { horizon = hasStored ? .start : .end }

    var count: Int { entries.count + around.count }
    /// Whether neither the window nor the store has jobs.
    var isEmpty: Bool { entries.isEmpty && around.isEmpty && horizon == .end }
    /// The first loaded jobs.
    func first(_ count: Int) -> [JobID] { entries.prefix(max(0, count)).map(\.position.id) }
    /// Returns whether a loaded job waits for a host.
    func waits(for host: String) -> Bool { hosts[host] != nil }

    /// Adds a job that became ready; a job after the horizon stays in the store.
    mutating func insert(_ row: ReadyRow) {
        switch horizon {
        case .start: return
        case .after(let last) where row.position > last:
            if row.host.map({ hostsBehind?.contains($0) == true }) != true { hostsBehind = nil }
            return
        case .after, .end: break
        }
        let index = entries.firstIndex { row.position < $0.position } ?? entries.endIndex
        guard index == entries.endIndex || entries[index].position != row.position else { return }
        entries.insert(row, at: index)
        count(row, 1)
        guard entries.count > 2 * Self.size else { return }
        for row in entries[Self.size...] { count(row, -1) }
        entries.removeSubrange(Self.size...)
        hostsBehind = nil
        if let last = entries.last { horizon = .after(last.position) }
    }

    mutating func remove(_ position: ReadyPosition) {
        if let index = entries.firstIndex(where: { $0.position == position }) {
            count(entries.remove(at: index), -1)
        } else if let index = around.firstIndex(where: { $0.position == position }) {
            count(around.remove(at: index), -1)
        }
    }

    /// Takes the first job that may start.
    /// `isOpen` returns whether a host has room, `closedHosts` the full hosts, and `read` ready jobs from the store.
    mutating func take(
        isOpen: (String?) -> Bool, closedHosts: () -> Set<String>,
        read: (ReadyPosition?, Set<String>, Int) throws(StoreError) -> [ReadyRow]
    ) throws(StoreError) -> ReadyRow? {
        while true {
            if let index = Self.first(in: entries, isOpen) {
                let row = entries.remove(at: index)
                count(row, -1)
                return row
            }
            guard horizon != .end, entries.count < Self.size else { break }
            try extend(read)
        }
        guard horizon != .end else { return nil }
        if let row = takeAround(isOpen) { return row }
        let hosts = closedHosts()
        // One owner may have very many jobs for a full host, which no read should pass over again and again.
        if let hostsBehind, hostsBehind.isSubset(of: hosts) { return nil }
        for row in around { count(row, -1) }
        around = try read(position, hosts, Self.aroundSize)
        for row in around { count(row, 1) }
        hostsBehind = around.count < Self.aroundSize ? hosts : nil
        return takeAround(isOpen)
    }

    /// Returns the index of the first job that may start. Neighbours often have the same host, which is asked about once.
    private static func first(in rows: [ReadyRow], _ isOpen: (String?) -> Bool) -> Int? {
        var closed: String?
        return rows.firstIndex { row in
            if let closed, row.host == closed { return false }
            if isOpen(row.host) { return true }
            closed = row.host
            return false
        }
    }

    private mutating func takeAround(_ isOpen: (String?) -> Bool) -> ReadyRow? {
        guard let index = Self.first(in: around, isOpen) else { return nil }
        let row = around.remove(at: index)
        count(row, -1)
        return row
    }

    /// The last position read.
    private var position: ReadyPosition? { if case .after(let position) = horizon { position } else { nil } }

    private mutating func extend(
        _ read: (ReadyPosition?, Set<String>, Int) throws(StoreError) -> [ReadyRow]
    ) throws(StoreError) {
        let rows = try read(position, [], Self.size)
        let known = Set(around.map(\.position))
        for row in rows where !known.contains(row.position) { count(row, 1) }
        entries += rows
        if rows.count == Self.size, let last = rows.last {
            horizon = .after(last.position)
            around.removeAll { $0.position <= last.position }
        } else {
            horizon = .end
            around = []
        }
    }

    private mutating func count(_ row: ReadyRow, _ change: Int) {
        guard let host = row.host else { return }
        let sum = hosts[host, default: 0] + change
        hosts[host] = sum > 0 ? sum : nil
    }
}
