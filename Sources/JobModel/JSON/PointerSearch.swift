/// Looks up many values in the same JSON; a large object gets an index.
///
/// Without one, as many look-ups as an object has members take quadratic time: minutes, for one document.
struct PointerSearch {
    /// The number of members up to which a linear search beats an index.
    private static let few = 32

    private struct Index {
        /// Retained, so that no other object's members can get the same address.
        let object: JSONObject
        /// The last position of each name.
        var positions: [[UInt8]: Int] = [:]
    }

    private var indexes: [UnsafeRawPointer: Index] = [:]

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
        if indexes[address] == nil {
            var index = Index(object: object)
            index.positions.reserveCapacity(object.members.count)
            for (position, member) in object.members.enumerated() {
                index.positions[Array(member.name.utf8)] = position
            }
            indexes[address] = index
        }
        return indexes[address]?.positions[Array(name.utf8)].map { object.members[$0].value }
    }
}
