import JobModel

/// The lists that are open: whose children they wait for, and which of these may start.
///
/// A list with a `concurrency` below its number of children has a gate: its children are not among the ready jobs of
/// their queue but read by `StoreRead.gated`, and admitted by index as others end.
struct ListCoordinator {
    /// Children of one list to be read from the store, for its gate.
    struct Request: Equatable {
        let list: JobID
        let link: Int
        let from: Int
        let limit: Int
        /// Tells the list from an earlier one of the same link, before a retry.
        fileprivate let opening: Int
    }

    struct List {
        let link: Int
        fileprivate(set) var join: ListJoin
        fileprivate(set) var gate: Gate?
        fileprivate let opening: Int
        /// The progress of children that have ended.
        fileprivate(set) var endedBytes: Int64 = 0
    }

    /// States: none or one read under way; `isAtEnd` once the last child was admitted, until one comes back from a
    /// retry.
    struct Gate {
        /// Children that are admitted ahead of those that run.
        fileprivate static let ahead = 16
        /// Children that are read at once: most of them may have been admitted before.
        fileprivate static let page = 64

        let concurrency: Int
        /// Children that were admitted and have not ended.
        fileprivate(set) var admitted: Set<JobID>
        fileprivate var cursor = 0
        fileprivate var isAtEnd = false
        fileprivate var isReading = false
        /// The first child that came back while a read was under way, which may have missed it.
        fileprivate var missed: Int?

        fileprivate init(concurrency: Int, admitted: Set<JobID>) {
            self.concurrency = concurrency
            self.admitted = admitted
        }
    }

    private var lists: [JobID: List] = [:]
    /// Those whose gate may let children in: something changed since it was last asked.
    private var changed: Set<JobID> = []
    private var lastOpening = 0

    subscript(id: JobID) -> List? { lists[id] }
    var count: Int { lists.count }

    /// Begins to wait for the children that `join` names. `active` are those of them that have started: they were
    /// admitted before.
    mutating func open(_ join: ListJoin, link: Int, concurrency: Int?, active: Set<JobID>, of id: JobID) {
        lastOpening += 1
        let gate = concurrency.flatMap { $0 < join.ids.count ? Gate(concurrency: $0, admitted: active) : nil }
        lists[id] = List(link: link, join: join, gate: gate, opening: lastOpening)
        if gate == nil { changed.remove(id) } else { changed.insert(id) }
    }

    mutating func close(_ id: JobID) {
        lists[id] = nil
        changed.remove(id)
    }

    /// Whether a child that a window gave may start.
    func mayStart(_ child: JobID, of id: JobID) -> Bool {
        guard let list = lists[id] else { return true }
        guard list.join.decision == nil else { return false }
        return list.gate.map { $0.admitted.contains(child) } ?? true
    }

    /// Whether it is known how a list ends, so that it has given up what is left of its children.
    func isDecided(_ id: JobID) -> Bool { lists[id]?.join.decision != nil }

    mutating func childEnded(_ child: JobID, at index: Int, _ state: JobState, bytes: Int64, of id: JobID)
        -> ListJoin.Action
    {
        if let ended = lists[id]?.endedBytes { lists[id]?.endedBytes = ended.saturatingAdding(bytes) }
        lists[id]?.gate?.admitted.remove(child)
        gateChanged(of: id)
        return lists[id]?.join.childEnded(index, state) ?? .none
    }

    /// A child waits for its retry, and lets a sibling run meanwhile.
    mutating func childPaused(_ child: JobID, of id: JobID) {
        lists[id]?.gate?.admitted.remove(child)
        gateChanged(of: id)
    }

    /// A child that was paused, or in memory when the list was opened, is ready again; the gate finds it by its index.
    mutating func childReturned(_ child: JobID, at index: Int, of id: JobID) {
        guard var gate = lists[id]?.gate else { return }
        gate.admitted.remove(child)
        if gate.isReading { gate.missed = min(gate.missed ?? index, index) }
        gate.isAtEnd = false
        gate.cursor = min(gate.cursor, index)
        lists[id]?.gate = gate
        gateChanged(of: id)
    }

    private mutating func gateChanged(of id: JobID) {
        if lists[id]?.gate != nil { changed.insert(id) }
    }

    /// The children to read so that more can start, if any; they are under way from then on.
    mutating func request(of id: JobID) -> Request? {
        changed.remove(id)
        guard let list = lists[id], let gate = list.gate, list.join.decision == nil, !gate.isReading, !gate.isAtEnd
        else { return nil }
        let room = min(gate.concurrency - gate.admitted.count, Gate.ahead)
        guard room > 0 else { return nil }
        lists[id]?.gate?.isReading = true
        // The rows that are read include those admitted already.
        return Request(
            list: id, link: list.link, from: gate.cursor, limit: min(room + gate.admitted.count, Gate.page),
            opening: list.opening)
    }

    /// Admits children that a read gave, as `present` says they are now; it gives nil for those that do not wait for
    /// the gate any more. Gives those that were admitted.
    mutating func received(
        _ request: Request, _ rows: [ReadyJob], present: (ReadyJob) -> ReadyJob?
    ) -> [ReadyJob] {
        guard let list = lists[request.list], list.opening == request.opening, var gate = list.gate else { return [] }
        gate.isReading = false
        var admitted: [ReadyJob] = []
        var room = min(gate.concurrency - gate.admitted.count, Gate.ahead)
        var next = request.from
        for row in rows {
            guard room > 0 else { break }
            next = (row.parent?.index ?? next) + 1
            guard !gate.admitted.contains(row.position.id), let child = present(row) else { continue }
            gate.admitted.insert(row.position.id)
            admitted.append(child)
            room -= 1
        }
        if let missed = gate.missed {
            gate.missed = nil
            gate.cursor = min(next, missed)
        } else {
            gate.cursor = next
            gate.isAtEnd = rows.count < request.limit && next > (rows.last?.parent?.index ?? -1)
        }
        lists[request.list]?.gate = gate
        gateChanged(of: request.list)
        return admitted
    }

    mutating func readFailed(_ request: Request) {
        guard lists[request.list]?.opening == request.opening else { return }
        lists[request.list]?.gate?.isReading = false
        gateChanged(of: request.list)
    }

    /// The lists that ``request(of:)`` may give something for, by id.
    var gated: [JobID] { changed.isEmpty ? [] : changed.sorted() }
}
