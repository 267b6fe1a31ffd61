/// Looks for many values in the same JSON: an object with many members that is asked again and again gets an index.
///
/// Without one, so many look-ups as an object has members take quadratic time: minutes, for what a document holds.
struct PointerSearch {
    /// Members that are compared one by one in less time than an index is asked.
    private static let few = 32
    /// Look-ups in one object before it gets an index, which takes about as long to make as some of them.
    private static let looksWithout = 8

    private struct Searched {
        /// Kept, so that no other object can have its members at the same address.
        let object: JSONObject
        var looks = 0
        /// Where each name stands last.
        var positions: [NameBytes: Int]?
    }

    private var searched: [UnsafeRawPointer: Searched] = [:]

    /// The value at `pointer` in `root`, or nil where there is none.
    mutating func value(at pointer: JSONPointer, in root: JSON) -> JSON? {
        root.value(at: pointer) { member($1, of: $0) }
    }

    private mutating func member(_ name: String, of object: JSONObject) -> JSON? {
        guard object.members.count > Self.few,
            let address = object.members.withUnsafeBufferPointer({ UnsafeRawPointer($0.baseAddress) })
        else { return object[name] }
        if let positions = searched[address]?.positions {
            return positions[NameBytes(name)].map { object.members[$0].value }
        }
        var entry = searched[address] ?? Searched(object: object)
        entry.looks += 1
        guard entry.looks > Self.looksWithout else {
            searched[address] = entry
            return object[name]
        }
        var positions: [NameBytes: Int] = [:]
        positions.reserveCapacity(object.members.count)
        for (position, member) in object.members.enumerated() { positions[NameBytes(member.name)] = position }
        entry.positions = positions
        searched[address] = entry
        return positions[NameBytes(name)].map { object.members[$0].value }
    }
}

/// A name that is equal only to one of the same bytes: `==` of strings also finds canonically equivalent ones equal.
private struct NameBytes: Hashable {
    private let text: String

    init(_ text: String) { self.text = text }

    static func == (left: NameBytes, right: NameBytes) -> Bool { left.text.hasSameBytes(as: right.text) }

    func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
