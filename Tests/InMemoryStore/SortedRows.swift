/// Values in key order, in chunks: among a million, a lookup, insertion or removal takes about a microsecond.
///
/// After a copy, a change copies one chunk and the list of chunks. A dictionary's order would vary between runs.
struct SortedRows<Key: Comparable & Sendable, Value: Sendable>: Sendable {
    private struct Chunk: Sendable {
        var keys: [Key] = []
        var values: [Value] = []
    }

    /// The position of a row, or of its insertion: the end of its chunk if it follows all its rows.
    fileprivate struct Position {
        var chunk: Int
        var offset: Int
    }

    private var chunks: [Chunk] = []
    /// The first key of each chunk, stored contiguously: following a pointer at each search step would be slow.
    private var firsts: [Key] = []
    private let largestChunk = 256
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    // MARK: Single rows

    subscript(key: Key) -> Value? {
        let position = position(notBefore: key)
        return contains(key, position) ? chunks[position.chunk].values[position.offset] : nil
    }

    /// Stores `value` under `key`, replacing any earlier value.
    mutating func set(_ key: Key, _ value: Value) {
        let position = position(notBefore: key)
        if contains(key, position) {
            chunks[position.chunk].values[position.offset] = value
        } else {
            insert(key, value, position)
        }
    }

    /// Stores `value` under `key`; nil removes the row.
    mutating func place(_ key: Key, _ value: Value?) {
        if let value { set(key, value) } else { remove(key) }
    }

    @discardableResult
    mutating func remove(_ key: Key) -> Value? {
        let position = position(notBefore: key)
        guard contains(key, position) else { return nil }
        count -= 1
        chunks[position.chunk].keys.remove(at: position.offset)
        let value = chunks[position.chunk].values.remove(at: position.offset)
        if position.offset == 0, let first = chunks[position.chunk].keys.first { firsts[position.chunk] = first }
        mergeIfSmall(position.chunk)
        return value
    }

    private mutating func insert(_ key: Key, _ value: Value, _ position: Position) {
        count += 1
        guard position.chunk < chunks.count else {
            chunks.append(Chunk(keys: [key], values: [value]))
            firsts.append(key)
            return
        }
        if position.offset == 0 { firsts[position.chunk] = key }
        chunks[position.chunk].keys.insert(key, at: position.offset)
        chunks[position.chunk].values.insert(value, at: position.offset)
        let size = chunks[position.chunk].keys.count
        guard size > largestChunk else { return }
        // Appended rows leave full chunks behind.
        let isAtEnd = position.chunk == chunks.count - 1 && position.offset == size - 1
        let start = isAtEnd ? size - 1 : size / 2
        let rest = Chunk(
            keys: Array(chunks[position.chunk].keys[start...]), values: Array(chunks[position.chunk].values[start...]))
        chunks[position.chunk].keys.removeSubrange(start...)
        chunks[position.chunk].values.removeSubrange(start...)
        firsts.insert(rest.keys[0], at: position.chunk + 1)
        chunks.insert(rest, at: position.chunk + 1)
    }

    private mutating func mergeIfSmall(_ index: Int) {
        let size = chunks[index].keys.count
        guard size < largestChunk / 4 else { return }
        if size == 0 {
            chunks.remove(at: index)
            firsts.remove(at: index)
        } else if index + 1 < chunks.count, size + chunks[index + 1].keys.count <= largestChunk / 2 {
            let next = chunks.remove(at: index + 1)
            firsts.remove(at: index + 1)
            chunks[index].keys += next.keys
            chunks[index].values += next.values
        }
    }

    // MARK: Ranges

    var first: Key? { chunks.first?.keys.first }

    /// Returns the rows whose key is at least `start`, in ascending order.
    func rows(from start: Key? = nil) -> Ascending {
        Ascending(rows: self, at: start.map { position(notBefore: $0) } ?? Position(chunk: 0, offset: 0))
    }

    struct Ascending: Sequence, IteratorProtocol {
        fileprivate let rows: SortedRows
        private var position: Position

        fileprivate init(rows: SortedRows, at position: Position) {
            self.rows = rows
            self.position = position
        }

        mutating func next() -> (key: Key, value: Value)? {
            guard position.chunk < rows.chunks.count else { return nil }
            if position.offset == rows.chunks[position.chunk].keys.count {
                position = Position(chunk: position.chunk + 1, offset: 0)
                guard position.chunk < rows.chunks.count else { return nil }
            }
            defer { position.offset += 1 }
            return (
                rows.chunks[position.chunk].keys[position.offset], rows.chunks[position.chunk].values[position.offset]
            )
        }
    }

    // MARK: Searching

    private func contains(_ key: Key, _ position: Position) -> Bool {
        position.chunk < chunks.count && position.offset < chunks[position.chunk].keys.count
            && chunks[position.chunk].keys[position.offset] == key
    }

    /// Returns the position of the first row whose key is at least `key`, or else the end of the last chunk.
    private func position(notBefore key: Key) -> Position {
        guard !chunks.isEmpty else { return Position(chunk: 0, offset: 0) }
        // The last chunk whose first key is not greater; each chunk has at least one row.
        let chunk = Swift.max(0, firsts.sortedIndex { $0 > key } - 1)
        return Position(chunk: chunk, offset: chunks[chunk].keys.sortedIndex { $0 >= key })
    }
}

extension Array {
    /// Returns the first index of a sorted array for which `isBehind` holds, or else its count.
    fileprivate func sortedIndex(_ isBehind: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if isBehind(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

typealias SortedKeys<Key: Comparable & Sendable> = SortedRows<Key, Void>

extension SortedRows where Value == Void {
    mutating func insert(_ key: Key) { set(key, ()) }
}
