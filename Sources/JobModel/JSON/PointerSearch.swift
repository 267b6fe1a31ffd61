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
    /// Names that were looked at, one by one or for an index: tests bound these, as time depends on the machine.
    private(set) var namesLookedAt = 0

    /// The value at `pointer` in `root`, or nil where there is none. An index is digits without a leading zero.
    mutating func value(at pointer: JSONPointer, in root: JSON) -> JSON? {
        var value = root
        for token in pointer.tokens {
            switch value {
            case .object(let object):
                guard let found = member(token, of: object) else { return nil }
                value = found
            case .array(let elements):
                guard let index = JSONPointer.index(token), elements.indices.contains(index) else { return nil }
                value = elements[index]
            default: return nil
            }
        }
        return value
    }

    private mutating func member(_ name: String, of object: JSONObject) -> JSON? {
        guard object.members.count > Self.few,
            let address = object.members.withUnsafeBufferPointer({ UnsafeRawPointer($0.baseAddress) })
        else { return compare(name, with: object) }
        if let positions = searched[address]?.positions { return ask(positions, for: name, of: object) }
        var entry = searched[address] ?? Searched(object: object)
        entry.looks += 1
        guard entry.looks > Self.looksWithout else {
            searched[address] = entry
            return compare(name, with: object)
        }
        var positions: [NameBytes: Int] = [:]
        positions.reserveCapacity(object.members.count)
        for (position, member) in object.members.enumerated() { positions[NameBytes(member.name)] = position }
        namesLookedAt += object.members.count
        entry.positions = positions
        searched[address] = entry
        return ask(positions, for: name, of: object)
    }

    /// Compares one name after the other, from the end, as the last of several counts.
    private mutating func compare(_ name: String, with object: JSONObject) -> JSON? {
        let position = object.members.lastIndex { $0.name.hasSameBytes(as: name) }
        namesLookedAt += object.members.count - (position ?? 0)
        return position.map { object.members[$0].value }
    }

    private mutating func ask(_ positions: [NameBytes: Int], for name: String, of object: JSONObject) -> JSON? {
        namesLookedAt += 1
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
