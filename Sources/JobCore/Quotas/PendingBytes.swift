import JobModel

/// How many bytes of memory the jobs take that are being stored or wait for their owners' turns, and which owners have so many
/// that nothing new of theirs starts. Without a bound, jobs that end at once would pile up in front of the disk, each with its
/// result, and those with long steps in front of their turns.
struct PendingBytes {
    /// Bytes of one owner beyond which nothing of theirs starts.
    static let mostOfOwner: Int64 = 16 << 20
    /// Bytes of all beyond which nothing starts; the last to start may make as much as a document holds.
    static let most: Int64 = 32 << 20
    /// Bytes of all beyond which jobs that are to be stopped are read slowly, and none are resumed at a start: they can be
    /// very many, and wait as well where they are.
    static let much: Int64 = 4 << 20

    private var all: Int64 = 0
    private var byOwner: [UInt32: Int64] = [:]

    var isFull: Bool { all >= Self.most }
    var isMuch: Bool { all >= Self.much }

    func isFull(for owner: UInt32) -> Bool { byOwner[owner, default: 0] >= Self.mostOfOwner }

    mutating func add(_ bytes: Int64, of owner: UInt32) {
        all = all.saturatingAdding(bytes)
        byOwner[owner, default: 0] = byOwner[owner, default: 0].saturatingAdding(bytes)
    }

    mutating func remove(_ bytes: Int64, of owner: UInt32) {
        all -= bytes
        let left = byOwner[owner, default: 0] - bytes
        byOwner[owner] = left > 0 ? left : nil
    }
}
