/// The condition that ends a `list` or `each` source, and its result.
package enum ListMode: String, Sendable, CaseIterable {
    /// When every child has ended, with all outcomes.
    case settled
    /// When every child has succeeded, or at the first failure.
    case all
    /// At the first success, or when every child has failed.
    case first
}

/// The children of a `list` or `each` source.
package struct ListSpec: Sendable, Equatable {
    /// The specs of a `list`, or the items of an `each`.
    package let elements: [JSON]
    package let mode: ListMode
    /// The number that run at once; nil leaves it to the queues.
    package let concurrency: Int?

    /// Reads the members of a source; `name` is that of the elements.
    init(_ reader: MemberReader, _ name: String, atMost limit: Int) throws(SpecError) {
        guard let elements = try reader.array(name, atMost: limit) else { throw reader.missing(name) }
        self.elements = elements
        mode = try reader.choice("mode") ?? .settled
        concurrency = try reader.integer("concurrency", in: 1...1_000_000)
    }
}

extension JSON {
    /// The number of children of a `list` or `each` source, before expansion.
    package var writtenChildren: Int { (self["jobs"] ?? self["in"])?.array?.count ?? 0 }
}
