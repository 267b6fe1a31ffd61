import JobModel

/// The ready jobs of an owner in a queue: all of them, and by host.
struct ReadyJobs {
    /// The most skipped jobs for excluded hosts before the search continues by host.
    private static let mostPassedOver = 256

    private var all = SortedRows<ReadyPosition, String?>()
    private var byHost: [String: SortedKeys<ReadyPosition>] = [:]
    private var withoutHost = SortedKeys<ReadyPosition>()

    var isEmpty: Bool { all.isEmpty }

    mutating func insert(_ row: ReadyRow) {
        all.set(row.position, row.host)
        if let host = row.host {
            byHost[host, default: SortedKeys()].insert(row.position)
        } else {
            withoutHost.insert(row.position)
        }
    }

    mutating func remove(_ row: ReadyRow) {
        all.remove(row.position)
        if let host = row.host {
            byHost[host]?.remove(row.position)
            if byHost[host]?.isEmpty == true { byHost[host] = nil }
        } else {
            withoutHost.remove(row.position)
        }
    }

    /// Returns the first `limit` jobs after `position`, without jobs for the hosts in `excluded`.
    func rows(after position: ReadyPosition?, excluding excluded: Set<String>, limit: Int) -> [ReadyRow] {
        var found: [ReadyRow] = []
        var passedOver = 0
        for (next, host) in all.rows(from: position?.next) {
            guard found.count < limit else { break }
            if let host, excluded.contains(host) {
                passedOver += 1
                if passedOver > Self.mostPassedOver {
                    return found + rowsByHost(from: next, excluding: excluded, limit: limit - found.count)
                }
            } else {
                found.append(ReadyRow(position: next, host: host))
            }
        }
        return found
    }

    /// Returns the same jobs without visiting jobs for the hosts in `excluded`.
    private func rowsByHost(from start: ReadyPosition, excluding excluded: Set<String>, limit: Int) -> [ReadyRow] {
        var first: [ReadyRow] = []
        func merge(_ positions: SortedKeys<ReadyPosition>, _ host: String?) {
            let last = first.count >= limit ? first[limit - 1].position : nil
            var added = 0
            for (position, _) in positions.rows(from: start) {
                if added == limit || last.map({ $0 < position }) == true { break }
                first.append(ReadyRow(position: position, host: host))
                added += 1
            }
            guard added > 0 else { return }
            first.sort { $0.position < $1.position }
            first.removeLast(max(0, first.count - limit))
        }
        merge(withoutHost, nil)
        for (host, positions) in byHost where !excluded.contains(host) { merge(positions, host) }
        return first
    }
}

extension ReadyPosition {
    /// The position that follows directly.
    fileprivate var next: ReadyPosition {
        id == .max ? ReadyPosition(priority: priority &- 1, id: .min) : ReadyPosition(priority: priority, id: id + 1)
    }
}
