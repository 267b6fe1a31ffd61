/// The condition that ends a `list` or `each` source, and its result.
package enum ListMode: String, Sendable, CaseIterable {
    /// When every child has ended, with all outcomes.
    case settled
    /// When every child has succeeded, or at the first failure.
    case all
    /// At the first success, or when every child has failed.
    case first
}

/// The children of a `list` source.
package struct ListSpec: Sendable, Equatable {
    package var jobs: [JSON]
    package var mode: ListMode
    /// The number that run at once; nil leaves it to the queues.
    package var concurrency: Int?

    static let members = ["type", "jobs", "mode", "concurrency"]

    init(_ reader: MemberReader, children: Int) throws(SpecError) {
        guard let jobs = try reader.array("jobs", atMost: children) else { throw reader.missing("jobs") }
        self.jobs = jobs
        mode = try reader.choice("mode") ?? .settled
        concurrency = try reader.integer("concurrency", in: 1...1_000_000)
    }
}

/// The items of an `each` source and the spec of each item's child.
package struct EachSpec: Sendable, Equatable {
    package var items: [JSON]
    package var job: JSON
    package var mode: ListMode
    package var concurrency: Int?

    static let members = ["type", "in", "job", "mode", "concurrency"]

    init(_ reader: MemberReader, children: Int) throws(SpecError) {
        guard let items = try reader.array("in", atMost: children) else { throw reader.missing("in") }
        self.items = items
        guard let job = reader.value("job") else { throw reader.missing("job") }
        self.job = job
        mode = try reader.choice("mode") ?? .settled
        concurrency = try reader.integer("concurrency", in: 1...1_000_000)
    }
}
