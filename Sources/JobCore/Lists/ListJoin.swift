import JobModel

/// Waits for the children of one `list` or `each`: says which outcome decides it, and when all have ended.
///
/// States: undecided, decided (the rest is being cancelled), over. Over is terminal. Invalid is an outcome for a child
/// that has one already; it is ignored.
struct ListJoin {
    enum Action: Equatable {
        case none
        /// The outcome is decided; the children that still go on are to be cancelled.
        case cancelRest
        /// Every child has ended.
        case end
    }

    /// What decided it.
    enum Decision: Equatable {
        /// The first failure of `all`, by index.
        case failed(Int)
        /// The first success of `first`, by index.
        case succeeded(Int)
    }

    let mode: ListMode
    let ids: [JobID]
    private(set) var decision: Decision?
    private var ended: [Bool]
    private(set) var endedCount = 0

    init(mode: ListMode, ids: [JobID]) {
        self.mode = mode
        self.ids = ids
        ended = Array(repeating: false, count: ids.count)
    }

    var isOver: Bool { endedCount == ids.count }

    /// The children that have not ended.
    var open: [JobID] { zip(ids, ended).filter { !$1 }.map(\.0) }

    mutating func childEnded(_ index: Int, _ state: JobState) -> Action {
        guard ended.indices.contains(index), !ended[index] else { return .none }
        ended[index] = true
        endedCount += 1
        if decision == nil {
            switch (mode, state) {
            case (.all, .failed), (.all, .cancelled): decision = .failed(index)
            case (.first, .succeeded): decision = .succeeded(index)
            default: break
            }
            if decision != nil, !isOver { return .cancelRest }
        }
        return isOver ? .end : .none
    }
}
