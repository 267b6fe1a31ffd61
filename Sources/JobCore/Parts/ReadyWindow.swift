import JobModel

/// The ready jobs of one owner in one queue that are at hand: the first ones, and some behind them whose hosts are free.
/// All others are in the store only.
struct ReadyWindow {
    /// Jobs that are read at once.
    static let size = 64
    /// Jobs that are read at once past those whose hosts are taken.
    static let aroundSize = 16

    private enum Horizon: Hashable {
        case start
        /// The store has jobs behind this position.
        case after(ReadyPosition)
        case end
    }

    /// In starting order, none of them behind the horizon.
    private var entries: [ReadyRow] = []
    /// Some jobs behind the horizon.
    private var around: [ReadyRow] = []
    private var horizon: Horizon
    /// The hosts without room for which nothing behind the horizon could start when the store was last asked; nil where one
    /// of them may have room by now.
    private var closed: Set<String>?
    private var hosts: [String: Int] = [:]

    /// A window of an owner whose ready jobs in the store were never looked at, or who has none there.
    init(hasStored: Bool) { horizon = hasStored ? .start : .end }

    var count: Int { entries.count + around.count }
    /// Whether there is nothing at hand, and nothing in the store.
    var isEmpty: Bool { entries.isEmpty && around.isEmpty && horizon == .end }
    /// Whether a job at hand waits for a host.
    func waits(for host: String) -> Bool { hosts[host] != nil }

    /// A job became ready. It stays in the store where others at hand come before it.
    mutating func insert(_ row: ReadyRow) {
        closed = nil
        switch horizon {
        case .start: return
        case .after(let last) where row.position > last: return
        case .after, .end: break
        }
        let index = entries.firstIndex { row.position < $0.position } ?? entries.endIndex
        guard index == entries.endIndex || entries[index].position != row.position else { return }
        entries.insert(row, at: index)
        count(row, 1)
        guard entries.count > 2 * Self.size else { return }
        for row in entries[Self.size...] { count(row, -1) }
        entries.removeSubrange(Self.size...)
        if let last = entries.last { horizon = .after(last.position) }
    }

    mutating func remove(_ position: ReadyPosition) {
        if let index = entries.firstIndex(where: { $0.position == position }) {
            count(entries.remove(at: index), -1)
        } else if let index = around.firstIndex(where: { $0.position == position }) {
            count(around.remove(at: index), -1)
        }
    }

    /// A host may have room by now; nil where any may.
    mutating func reopen(_ host: String?) { if host.map({ closed?.contains($0) == true }) ?? true { closed = nil } }

    /// Whether jobs at hand wait for hosts.
    var waitsForHosts: Bool { !hosts.isEmpty }

    /// Takes the first job that may start. `isOpen` says of a host whether it has room, `closedHosts` names those that have
    /// none, and `read` gives ready jobs of the store.
    mutating func take(
        isOpen: (String?) -> Bool, closedHosts: () -> Set<String>,
        read: (ReadyPosition?, Set<String>, Int) throws(StoreError) -> [ReadyRow]
    ) throws(StoreError) -> ReadyRow? {
        while true {
            if let index = entries.firstIndex(where: { isOpen($0.host) }) {
                let row = entries.remove(at: index)
                count(row, -1)
                return row
            }
            guard horizon != .end, entries.count < Self.size else { break }
            try extend(read)
        }
        guard horizon != .end, closed == nil else { return nil }
        if let row = takeAround(isOpen) { return row }
        for row in around { count(row, -1) }
        let hosts = closedHosts()
        around = try read(position, hosts, Self.aroundSize)
        for row in around { count(row, 1) }
        let row = takeAround(isOpen)
        if row == nil { closed = hosts }
        return row
    }

    private mutating func takeAround(_ isOpen: (String?) -> Bool) -> ReadyRow? {
        guard let index = around.firstIndex(where: { isOpen($0.host) }) else { return nil }
        let row = around.remove(at: index)
        count(row, -1)
        return row
    }

    /// The last position that was read.
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

extension ReadyPosition {
    static func > (left: ReadyPosition, right: ReadyPosition) -> Bool { right < left }
}
