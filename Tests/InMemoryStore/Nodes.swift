package import JobModel

/// The nodes of a store, and what each has not heard of yet.
struct Nodes {
    /// What a round has changed.
    struct Record {
        let life: Int64
        let jobs: [JobID]
        let work: [Int64]
        let counts: [CountKey]
        let hasQueues: Bool
        let hasSchedules: Bool
    }

    /// Lives that go on, each with the number of records that it has heard of.
    private var heard: [Int64: Int]
    /// The nodes of lives that have a name.
    private var names: [Int64: String] = [:]
    /// Lives that are over, and whether they were stopped in order.
    private(set) var over: [Int64: Bool] = [:]
    /// Whether runs of such may be left.
    private var hasLost = false
    private var records: [Record] = []
    /// The number of records that were dropped, as all have heard of them.
    private var dropped = 0
    private var total: Int { dropped + records.count }
    /// Records of which a round hears at most.
    var mostHeard = Int.max

    init(life: Int64) { heard = [life: 0] }

    var living: Set<Int64> { Set(heard.keys) }

    mutating func begin(life: Int64, node: String?) {
        heard[life] = total
        names[life] = node
    }

    /// Whether a node has no life that goes on.
    func isGone(_ node: String) -> Bool { !living.contains { names[$0] == node } }

    mutating func end(life: Int64, wasStopped: Bool) {
        guard heard.removeValue(forKey: life) != nil else { return }
        over[life] = wasStopped
        hasLost = true
    }

    /// The number of records of which a life will have heard after its round.
    private func next(for life: Int64) -> Int {
        heard[life].map { min(total, $0.saturatingAdding(mostHeard)) } ?? total
    }

    func news(for life: Int64, _ rows: StoredRows) -> News? {
        var news = News()
        news.hasLostRuns = hasLost
        let end = next(for: life)
        news.hasMore = end < total
        let new = heard[life].map { records[($0 - dropped)..<(end - dropped)].filter { $0.life != life } } ?? []
        guard hasLost || !new.isEmpty else { return nil }
        news.jobs = Set(new.flatMap(\.jobs)).sorted()
        news.work = new.flatMap(\.work)
        for key in new.flatMap(\.counts) { news.counts[key] = rows.counts[key] ?? CountValue() }
        news.hasQueues = new.contains(where: \.hasQueues)
        news.hasSchedules = new.contains(where: \.hasSchedules)
        return news
    }

    /// Takes note of a committed round; `record` gives what it has changed, and nil if nothing.
    mutating func committed(life: Int64, hasHeard: Bool, forgetsLost: Bool, _ record: () -> Record?) {
        if forgetsLost { hasLost = false }
        let end = next(for: life)
        if hasHeard { heard[life] = end }
        guard heard.count > 1, let record = record() else { return trim() }
        // It has nothing to hear from itself.
        if hasHeard, end == total { heard[life] = end + 1 }
        records.append(record)
        trim()
    }

    private mutating func trim() {
        let common = heard.values.min() ?? 0
        records.removeFirst(common - dropped)
        dropped = common
    }
}

extension JobRow {
    /// Whether a ready job may start at a node; nil stands for the only one.
    package func isReady(at node: String?) -> Bool { node == nil || self.node == nil || self.node == node }
}
