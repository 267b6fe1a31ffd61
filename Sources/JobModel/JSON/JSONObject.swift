/// The members of a JSON object in the written order.
///
/// Look-ups search from the end, so the last of several members with one name counts. Equality and hashing ignore the
/// order. Names compare by bytes: `\u{E9}` is not `e\u{301}`, although Swift treats these strings as equal.
public struct JSONObject: Sendable {
    /// A name and its value.
    public struct Member: Sendable, Hashable {
        /// The member's name.
        public let name: String
        /// The member's value.
        public var value: JSON

        /// Pairs a name with a value.
        public init(name: String, value: JSON) {
            self.name = name
            self.value = value
        }
    }

    /// All members, in order.
    public private(set) var members: [Member]

    /// Makes an object of these members.
    public init(_ members: [Member] = []) { self.members = members }

    /// The names of all members, in order.
    public var names: [String] { members.map(\.name) }

    /// The value under `name`; assigning nil removes the member, assigning to a new name appends it.
    public subscript(name: String) -> JSON? {
        get {
            // By index, as a closure would retain each member. Comparing lengths first rules out nearly all other names.
            let count = name.utf8.count
            for index in members.indices.reversed()
            where members[index].name.utf8.count == count && members[index].name.hasSameBytes(as: name) {
                return members[index].value
            }
            return nil
        }
        set {
            guard let newValue else { return members.removeAll { $0.name.hasSameBytes(as: name) } }
            if let index = members.lastIndex(where: { $0.name.hasSameBytes(as: name) }) {
                members[index].value = newValue
            } else {
                members.append(Member(name: name, value: newValue))
            }
        }
    }

    /// Appends a member without looking for an earlier one of that name.
    package mutating func append(_ name: String, _ value: JSON) { members.append(Member(name: name, value: value)) }

    package func mapValues<Failure: Error>(
        _ transform: (Member) throws(Failure) -> JSON
    ) throws(Failure) -> JSONObject {
        var mapped = JSONObject()
        mapped.members.reserveCapacity(members.count)
        for member in members { mapped.append(member.name, try transform(member)) }
        return mapped
    }

    /// The members sorted by the bytes of their names; only the last of several with one name.
    package var sorted: [Member] {
        let all = members.enumerated().sorted { left, right in
            if left.element.name.hasSameBytes(as: right.element.name) { return left.offset > right.offset }
            return left.element.name.utf8.lexicographicallyPrecedes(right.element.name.utf8)
        }
        var sorted: [Member] = []
        sorted.reserveCapacity(all.count)
        for (_, member) in all where sorted.last?.name.hasSameBytes(as: member.name) != true { sorted.append(member) }
        return sorted
    }
}

extension JSONObject: Hashable {
    /// Returns whether both have the same names with equal values, in any order.
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        // Each value is compared once: a second comparison would double the work at every level.
        left.sorted.elementsEqual(right.sorted) { $0.name.hasSameBytes(as: $1.name) && $0.value == $1.value }
    }

    /// Hashes the members regardless of order.
    public func hash(into hasher: inout Hasher) { hasher.combine(sorted) }
}

extension String {
    /// Returns whether both have the same code points; `==` also accepts canonical equivalents.
    package func hasSameBytes(as other: String) -> Bool {
        let count = utf8.count
        guard count == other.utf8.count else { return false }
        // `==` is faster for text that is mostly ASCII, and slower than anything for some that is not.
        if count > 2 * Self.mostCombining { return utf8.elementsEqual(other.utf8) }
        // A canonical equivalent of ASCII is longer.
        return self == other && (utf16.count == count || utf8.elementsEqual(other.utf8))
    }
}
