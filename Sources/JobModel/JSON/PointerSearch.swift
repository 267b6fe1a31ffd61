/// Looks up many values in the same JSON; a large object that is searched often gets an index.
///
/// Without one, as many look-ups as an object has members take quadratic time: minutes, for one document.
struct PointerSearch {
    /// The number of members up to which a linear search beats an index.
    private static let few = 32
    /// Look-ups in one object before it gets an index, which costs about as much as a few of them.
    private static let looksWithout = 8

    private struct Searched {
        /// Retained, so that no other object's members can get the same address.
        let object: JSONObject
        var looks = 0
        /// The last position of each name, once it has an index.
        var positions: [NameBytes: Int] = [:]
    }

    private var searched: [UnsafeRawPointer: Searched] = [:]

    /// Returns the value at `pointer` in `root`, or nil; an array index is digits without a leading zero.
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
        else { return object[name] }
        var entry = searched.removeValue(forKey: address) ?? Searched(object: object)
        defer { searched[address] = entry }
        entry.looks += 1
        guard entry.looks > Self.looksWithout else { return object[name] }
        if entry.positions.isEmpty {
            entry.positions.reserveCapacity(object.members.count)
            for (position, member) in object.members.enumerated() { entry.positions[NameBytes(member.name)] = position }
        }
        return entry.positions[NameBytes(name)].map { object.members[$0].value }
    }
}

/// A name that compares by bytes; `==` of strings also accepts canonical equivalents.
private struct NameBytes: Hashable {
    private let text: String

    init(_ text: String) { self.text = text }

    static func == (left: NameBytes, right: NameBytes) -> Bool { left.text.hasSameBytes(as: right.text) }

    func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
