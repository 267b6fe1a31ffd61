/// Values in the order of their keys, in chunks: finding, inserting and removing take logarithmic time for as many as
/// fit in memory, and a change after a copy copies one chunk and the list of chunks.
///
/// Of a dictionary the order would differ from run to run.
struct SortedRows<Key: Comparable & Sendable, Value: Sendable>: Sendable {
    private struct Chunk: Sendable {
        var keys: [Key] = []
        var values: [Value] = []
    }

    /// Where a row is, or would be: past the end of its chunk where it comes after all of it.
    fileprivate struct Position {
        var chunk: Int
        var offset: Int
    }

    private var chunks: [Chunk] = []
    private let largestChunk: Int
    private(set) var count = 0

    init(largestChunk: Int = 256) {
        self.largestChunk = largestChunk
    }

    var isEmpty: Bool { count == 0 }
    var chunkCount: Int { chunks.count }

    // MARK: Single rows

    subscript(key: Key) -> Value? {
        let position = position(notBefore: key)
        return contains(key, position) ? chunks[position.chunk].values[position.offset] : nil
    }

    func contains(_ key: Key) -> Bool { contains(key, position(notBefore: key)) }

    /// Stores `value` under `key`, whatever was there before.
    mutating func set(_ key: Key, _ value: Value) {
        let position = position(notBefore: key)
        if contains(key, position) {
            chunks[position.chunk].values[position.offset] = value
        } else {
            insert(key, value, position)
        }
    }

    /// Changes the value under `key`, or `initial` where there is none, without a copy.
    mutating func change<Result>(_ key: Key, or initial: Value, _ body: (inout Value) -> Result) -> Result {
        var position = position(notBefore: key)
        if !contains(key, position) {
            insert(key, initial, position)
            position = self.position(notBefore: key)
        }
        return body(&chunks[position.chunk].values[position.offset])
    }

    @discardableResult
    mutating func remove(_ key: Key) -> Value? {
        let position = position(notBefore: key)
        guard contains(key, position) else { return nil }
        count -= 1
        chunks[position.chunk].keys.remove(at: position.offset)
        let value = chunks[position.chunk].values.remove(at: position.offset)
        mergeIfSmall(position.chunk)
        return value
    }

    private mutating func insert(_ key: Key, _ value: Value, _ position: Position) {
        count += 1
        guard position.chunk < chunks.count else {
            chunks.append(Chunk(keys: [key], values: [value]))
            return
        }
        chunks[position.chunk].keys.insert(key, at: position.offset)
        chunks[position.chunk].values.insert(value, at: position.offset)
        let size = chunks[position.chunk].keys.count
        guard size > largestChunk else { return }
        // Rows that are appended at the end leave full chunks behind.
        let isAtEnd = position.chunk == chunks.count - 1 && position.offset == size - 1
        let start = isAtEnd ? size - 1 : size / 2
        let rest = Chunk(
            keys: Array(chunks[position.chunk].keys[start...]), values: Array(chunks[position.chunk].values[start...]))
        chunks[position.chunk].keys.removeSubrange(start...)
        chunks[position.chunk].values.removeSubrange(start...)
        chunks.insert(rest, at: position.chunk + 1)
    }

    private mutating func mergeIfSmall(_ index: Int) {
        let size = chunks[index].keys.count
        guard size < largestChunk / 4 else { return }
        if size == 0 {
            chunks.remove(at: index)
        } else if index + 1 < chunks.count, size + chunks[index + 1].keys.count <= largestChunk / 2 {
            let next = chunks.remove(at: index + 1)
            chunks[index].keys += next.keys
            chunks[index].values += next.values
        }
    }

    // MARK: Ranges

    var first: Key? { chunks.first?.keys.first }

    /// The key that `offset` others come after.
    func key(fromEnd offset: Int) -> Key? {
        guard (0..<count).contains(offset) else { return nil }
        var left = offset
        for chunk in chunks.reversed() {
            if left < chunk.keys.count { return chunk.keys[chunk.keys.count - 1 - left] }
            left -= chunk.keys.count
        }
        return nil
    }

    /// The rows from the first whose key is not before `start`, in ascending order.
    func rows(from start: Key? = nil) -> Ascending {
        Ascending(rows: self, at: start.map { position(notBefore: $0) } ?? Position(chunk: 0, offset: 0))
    }

    /// The rows before the first whose key is not before `end`, in descending order.
    func descending(before end: Key? = nil) -> Descending {
        Descending(rows: self, at: end.map { position(notBefore: $0) } ?? Position(chunk: chunks.count, offset: 0))
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

    struct Descending: Sequence, IteratorProtocol {
        fileprivate let rows: SortedRows
        /// The position after the next row.
        private var position: Position

        fileprivate init(rows: SortedRows, at position: Position) {
            self.rows = rows
            self.position = position
        }

        mutating func next() -> (key: Key, value: Value)? {
            if position.offset == 0 {
                guard position.chunk > 0 else { return nil }
                position = Position(chunk: position.chunk - 1, offset: rows.chunks[position.chunk - 1].keys.count)
            }
            position.offset -= 1
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

    /// The first row whose key is not before `key`; where there is none, the end of the last chunk.
    private func position(notBefore key: Key) -> Position {
        // The last chunk that does not begin after it; each has at least one row.
        var (low, high) = (0, chunks.count)
        while low < high {
            let middle = (low + high) / 2
            if chunks[middle].keys[0] <= key { low = middle + 1 } else { high = middle }
        }
        let chunk = Swift.max(0, low - 1)
        guard chunk < chunks.count else { return Position(chunk: 0, offset: 0) }
        (low, high) = (0, chunks[chunk].keys.count)
        while low < high {
            let middle = (low + high) / 2
            if chunks[chunk].keys[middle] < key { low = middle + 1 } else { high = middle }
        }
        return Position(chunk: chunk, offset: low)
    }
}

/// Keys in their order.
typealias SortedKeys<Key: Comparable & Sendable> = SortedRows<Key, Void>

extension SortedRows where Value == Void {
    mutating func insert(_ key: Key) { set(key, ()) }
}
