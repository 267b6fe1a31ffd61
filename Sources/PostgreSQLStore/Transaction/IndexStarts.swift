import JobModel

/// Where the ready jobs of each owner in a queue start, and those that wait for a time. Before that, an index may have many
/// dead entries, which the server keeps, and passes each time, as long as another session has an old snapshot.
///
/// It is known from the last read, and from all jobs that were changed since: by this node, and in the news.
struct IndexStarts {
    private struct Share: Hashable {
        let queue: String
        let owner: UInt32
    }

    private static let mostShares = 10_000
    /// Where no job is ready.
    private static let end = ReadyPosition(priority: .min, id: .max)

    private var starts: [Share: ReadyPosition] = [:]
    /// No unfinished job is due, or has its deadline, before this time; nil if that is not known.
    private(set) var due: SteadyTime?

    /// The position after which all ready jobs are; nil if that is not known.
    func before(queue: String, owner: UInt32) -> ReadyPosition? {
        starts[Share(queue: queue, owner: owner)].map { ReadyPosition(priority: $0.priority, id: $0.id - 1) }
    }

    /// Notes the first ready job that a read from the start has found.
    mutating func found(_ first: ReadyPosition?, queue: String, owner: UInt32) {
        if starts.count >= Self.mostShares { starts.removeAll() }
        starts[Share(queue: queue, owner: owner)] = first ?? Self.end
    }

    /// Notes that no job before this one has become ready.
    mutating func lower(to position: ReadyPosition) {
        for (share, start) in starts where position < start { starts[share] = position }
    }

    /// Notes the first time that a read has found.
    mutating func found(due: SteadyTime?) { self.due = due ?? .max }

    /// Notes that no job is due before this time that was not before.
    mutating func lower(to due: SteadyTime) { self.due = self.due.map { min($0, due) } }
}
