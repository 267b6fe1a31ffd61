import JobModel

/// Tells whether what was read from the store was overtaken meanwhile.
///
/// A job that is not in memory stands in the store as it is. But during a read it can come into memory, change and leave
/// again; what the read then gives is old. So the fence notes who left while reads are open.
struct ReadFence {
    /// An open read.
    struct Read {
        fileprivate let number: Int
    }

    private var number = 0
    private var open: Set<Int> = []
    /// The reads that were begun before a job left are those up to its number here.
    private var left: [JobID: Int] = [:]

    mutating func begin() -> Read {
        number += 1
        open.insert(number)
        return Read(number: number)
    }

    mutating func end(_ read: Read) {
        open.remove(read.number)
        guard let first = open.min() else { return left.removeAll() }
        if left.count > 4096 { left = left.filter { $0.value >= first } }
    }

    /// A job was changed and is no longer in memory.
    mutating func jobLeft(_ id: JobID) {
        if !open.isEmpty { left[id] = number }
    }

    /// Whether `read` may have seen the job as it was before it left.
    func isOld(_ id: JobID, in read: Read) -> Bool { left[id].map { read.number <= $0 } ?? false }
}
