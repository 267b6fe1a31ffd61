/// Keys in order, in chunks: an insertion moves some hundred of them, however many there are.
struct SortedIndex<Key: Comparable> {
    private static var most: Int { 512 }

    private var chunks: [[Key]] = []

    var isEmpty: Bool { chunks.isEmpty }
    var first: Key? { chunks.first?.first }

    /// The chunk that a key belongs to.
    private func chunk(of key: Key) -> Int {
        var (low, high) = (0, chunks.count)
        while low < high {
            let middle = (low + high) / 2
            if let last = chunks[middle].last, last < key { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// The index of the first key of a chunk that is not below `key`.
    private static func index(of key: Key, in chunk: [Key]) -> Int {
        var (low, high) = (0, chunk.count)
        while low < high {
            let middle = (low + high) / 2
            if chunk[middle] < key { low = middle + 1 } else { high = middle }
        }
        return low
    }

    mutating func insert(_ key: Key) {
        guard !chunks.isEmpty else { return chunks.append([key]) }
        let number = min(chunk(of: key), chunks.count - 1)
        let index = Self.index(of: key, in: chunks[number])
        if index < chunks[number].count, chunks[number][index] == key { return }
        chunks[number].insert(key, at: index)
        guard chunks[number].count > Self.most else { return }
        let half = chunks[number].count / 2
        chunks.insert(Array(chunks[number][half...]), at: number + 1)
        chunks[number].removeSubrange(half...)
    }

    mutating func remove(_ key: Key) {
        let number = chunk(of: key)
        guard number < chunks.count else { return }
        let index = Self.index(of: key, in: chunks[number])
        guard index < chunks[number].count, chunks[number][index] == key else { return }
        chunks[number].remove(at: index)
        if chunks[number].isEmpty { chunks.remove(at: number) }
    }

    /// Calls `body` with each key from `start` on, in order, until that says to stop.
    func forEach(from start: Key, _ body: (Key) -> Bool) {
        var number = chunk(of: start)
        guard number < chunks.count else { return }
        var index = Self.index(of: start, in: chunks[number])
        while number < chunks.count {
            while index < chunks[number].count {
                guard body(chunks[number][index]) else { return }
                index += 1
            }
            number += 1
            index = 0
        }
    }

    /// The first `limit` keys from `start` on that `isMeant` says, until one that it says to stop at with nil.
    func keys(from start: Key, limit: Int, _ isMeant: (Key) -> Bool?) -> [Key] {
        var found: [Key] = []
        forEach(from: start) { key in
            guard found.count < limit, let isMeant = isMeant(key) else { return false }
            if isMeant { found.append(key) }
            return found.count < limit
        }
        return found
    }
}
