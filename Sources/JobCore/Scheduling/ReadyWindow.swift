import HeapModule
import JobModel

/// The first of one owner's ready jobs in one queue, in memory and partitioned by concurrency key, so that a host at
/// its limit delays only the jobs that need it.
///
/// Jobs behind the horizon are in the store only, but for a few: those that were read because all of the others wait
/// for a host. It is an object, so that no copy of it ever copies a heap.
final class ReadyWindow {
    /// A job that can start or, in the middle of its chain, go on.
    struct Entry: Comparable {
        let position: ReadyPosition
        let key: ConcurrencyKey
        let parent: Job.Parent?
        /// The job, where it can start and is small; others are read when their turn comes.
        let job: Job?
        /// What it takes in memory while it is open, where it is a list.
        let bytes: Int
        /// Whether the store would not give it again, so that it must stay here: it is in the middle of its chain, or its
        /// list starts it.
        let isPinned: Bool
        /// Tells this entry from an earlier one of the same job, which was removed.
        fileprivate var stamp = 0

        init(
            _ position: ReadyPosition, _ key: ConcurrencyKey, parent: Job.Parent?, job: Job?, bytes: Int64? = nil,
            isPinned: Bool
        ) {
            self.position = position
            self.key = key
            self.parent = parent
            self.job = job
            self.bytes = key.isList ? Int(bytes ?? job?.memorySize ?? 0) : 0
            self.isPinned = isPinned
        }

        static func < (left: Entry, right: Entry) -> Bool { left.position < right.position }
        static func == (left: Entry, right: Entry) -> Bool { left.position == right.position }
    }

    /// How far the window reaches.
    enum Horizon: Equatable {
        /// Nothing was read yet.
        case start
        case at(ReadyPosition)
        /// Every ready job is in the window.
        case end

        func isBefore(_ position: ReadyPosition) -> Bool {
            switch self {
            case .start: true
            case .at(let horizon): horizon < position
            case .end: false
            }
        }
    }

    /// What is to be read from the store.
    enum Request: Equatable {
        /// The jobs behind the window.
        case more(after: ReadyPosition?)
        /// Jobs from behind the window that do not wait for these hosts.
        case around(Set<String>, after: ReadyPosition?)
    }

    /// Jobs that are read at once; the window keeps at most twice as many, the pinned ones aside.
    static let size = 512
    /// Jobs that are read at once from around closed hosts.
    static let aroundSize = 64

    /// How far behind the horizon was read for jobs that wait for none of these keys.
    private struct Search {
        let closed: Set<ConcurrencyKey>
        var after: ReadyPosition?
        /// Nothing more was found, and no job has become ready since.
        var isDone = false
    }

    /// Closed keys that are read around.
    private static let mostClosed = 1024

    private final class Partition {
        var heap = Heap<Entry>()
    }

    private var partitions: [ConcurrencyKey: Partition] = [:]
    /// The jobs in the window, with the stamps of their entries.
    private var members: [JobID: (stamp: Int, isPinned: Bool)] = [:]
    private var pinned = 0
    private var lastStamp = 0
    /// Entries in the heaps that were removed meanwhile.
    private var stale = 0
    private(set) var horizon: Horizon
    private(set) var request: Request?
    /// Jobs that became ready behind the horizon while a read was under way, which may have missed them.
    private var arrived: [Entry] = []
    /// More arrived than are kept, so the result of the read is dropped.
    private var arrivedTooMany = false
    private var search: Search?

    init(horizon: Horizon) {
        self.horizon = horizon
    }

    /// Whether there are no ready jobs, neither here nor in the store.
    var isEmpty: Bool { members.isEmpty && horizon == .end && request == nil }
    var count: Int { members.count }

    // MARK: - In and out

    /// Inserts a job that became ready. One behind the horizon stays in the store, unless it is pinned.
    func insert(_ entry: Entry) {
        guard !entry.isPinned else { return add(entry) }
        if members.count - pinned >= Self.size * 2 { trim() }
        guard horizon.isBefore(entry.position) else { return add(entry) }
        if search?.closed.contains(entry.key) == false { search = nil }
        guard request != nil else { return }
        if arrived.count < Self.size { arrived.append(entry) } else { arrivedTooMany = true }
    }

    /// Whether ``insert(_:)`` would do nothing with such a job, which the store keeps for later.
    func leavesInStore(_ position: ReadyPosition) -> Bool {
        request == nil && search == nil && members.count - pinned < Self.size * 2 && horizon.isBefore(position)
    }

    private func add(_ entry: Entry) {
        guard members[entry.position.id] == nil else { return }
        lastStamp += 1
        var entry = entry
        entry.stamp = lastStamp
        members[entry.position.id] = (lastStamp, entry.isPinned)
        if entry.isPinned { pinned += 1 }
        let partition = partitions[entry.key] ?? Partition()
        partition.heap.insert(entry)
        partitions[entry.key] = partition
    }

    /// Drops, as the store has them, the jobs that were read around closed keys and, where that is not enough, the last
    /// half of the window.
    private func trim() {
        search = nil
        dropBehindHorizon()
        guard members.count - pinned >= Self.size * 2 else { return }
        let entries = live().sorted()
        let kept = entries.filter { !$0.isPinned }.prefix(Self.size)
        guard let last = kept.last else { return }
        horizon = .at(last.position)
        refill(kept + entries.filter(\.isPinned))
    }

    private func dropBehindHorizon() {
        refill(live().filter { $0.isPinned || !horizon.isBefore($0.position) })
    }

    private func refill(_ entries: [Entry]) {
        partitions = [:]
        members = [:]
        pinned = 0
        stale = 0
        for entry in entries { add(entry) }
    }

    private func live() -> [Entry] {
        partitions.values.flatMap(\.heap.unordered).filter { members[$0.position.id]?.stamp == $0.stamp }
    }

    /// Removes a job. Its entry stays in the heap until it comes to the top, or until there are too many such entries.
    func remove(_ id: JobID) {
        arrived.removeAll { $0.position.id == id }
        guard let member = members.removeValue(forKey: id) else { return }
        if member.isPinned { pinned -= 1 }
        stale += 1
        if stale > Self.size { refill(live()) }
    }

    /// Whether a job waits for `key`.
    func waits(for key: ConcurrencyKey) -> Bool { partitions[key].map { first(of: $0) != nil } ?? false }

    /// The first job whose key is open; it stays in the window.
    func first(where isOpen: (ConcurrencyKey) -> Bool) -> Entry? {
        var best: Entry?
        for (key, partition) in partitions {
            guard let entry = first(of: partition) else {
                partitions[key] = nil
                continue
            }
            if let best, best.position < entry.position { continue }
            if isOpen(key) { best = entry }
        }
        return best
    }

    /// The first entry that was not removed meanwhile.
    private func first(of partition: Partition) -> Entry? {
        while let entry = partition.heap.min {
            if members[entry.position.id]?.stamp == entry.stamp { return entry }
            partition.heap.removeMin()
            stale -= 1
        }
        return nil
    }

    /// Removes the first entry of its partition.
    func pop(_ entry: Entry) {
        guard members[entry.position.id]?.stamp == entry.stamp, let partition = partitions[entry.key],
            partition.heap.min?.stamp == entry.stamp
        else { return }
        partition.heap.removeMin()
        members[entry.position.id] = nil
        if entry.isPinned { pinned -= 1 }
        if partition.heap.isEmpty { partitions[entry.key] = nil }
    }

    // MARK: - Reading on

    /// What to read from the store now, if anything; it is under way from then on.
    func nextRequest(hasRoom: Bool, isOpen: (ConcurrencyKey) -> Bool) -> Request? {
        guard request == nil, horizon != .end else { return nil }
        if members.count - pinned < Self.size / 2 {
            request = .more(after: position)
        } else if hasRoom, partitions.keys.allSatisfy({ $0 != .none && !isOpen($0) }) {
            request = aroundClosed(isOpen)
        }
        return request
    }

    /// All jobs here wait for closed keys, so jobs with other keys are looked for behind the horizon. The search goes
    /// on where the last one ended, as long as the keys it passed over are still closed.
    private func aroundClosed(_ isOpen: (ConcurrencyKey) -> Bool) -> Request? {
        var closed = Set(partitions.keys)
        var after = position
        if let search, search.closed.allSatisfy({ !isOpen($0) }) {
            if search.isDone { return nil }
            closed.formUnion(search.closed)
            after = [after, search.after].compactMap(\.self).max()
        }
        guard closed.count <= Self.mostClosed else { return nil }
        if members.count - pinned + Self.aroundSize > Self.size * 2 { dropBehindHorizon() }
        search = Search(closed: closed, after: after)
        // A retry may go to a host that is closed to other jobs.
        return .around(
            Set(closed.compactMap { key in if case .hostAgain = key { nil } else { key.name } }), after: after)
    }

    private var position: ReadyPosition? {
        if case .at(let position) = horizon { position } else { nil }
    }

    /// Inserts what a read gave, without those that changed since it was asked. `isLast` says that there were no more
    /// rows; `last` is the position of the last row, also if that is left out.
    func received(_ entries: [Entry], isLast: Bool, last: ReadyPosition?) {
        defer {
            request = nil
            arrived = []
            arrivedTooMany = false
        }
        guard case .more(let start) = request else {
            for entry in entries { add(entry) }
            if let last { search?.after = last }
            search?.isDone = isLast
            return
        }
        // The window was trimmed meanwhile, so there is a gap between its end and what was read.
        guard start == position, !arrivedTooMany else { return }
        for entry in entries { add(entry) }
        if isLast { horizon = .end } else if let last { horizon = .at(last) }
        for entry in arrived where !horizon.isBefore(entry.position) { add(entry) }
    }

    func readFailed() {
        request = nil
        // What arrived meanwhile is behind the horizon, where the next read finds it.
        arrived = []
        arrivedTooMany = false
    }
}
