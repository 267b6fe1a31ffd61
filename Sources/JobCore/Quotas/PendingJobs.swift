import JobModel

/// How many jobs are being stored or wait for their owners' turns, how many bytes of memory they take, and which owners have so
/// many that nothing new of theirs starts. Without a bound, jobs that end at once would pile up in front of the disk, each with
/// its result, and those with long steps in front of their turns.
struct PendingJobs {
    /// Bytes of one owner beyond which nothing of theirs starts.
    static let mostOfOwner: Int64 = 16 << 20
    /// Bytes of all beyond which nothing starts; the last to start may make as much as a document holds.
    static let most: Int64 = 32 << 20
    /// Bytes of all beyond which jobs that are to be stopped are read slowly, and none are resumed at a start: they can be
    /// very many, and wait as well where they are.
    static let much: Int64 = 4 << 20

    /// Jobs of one owner beyond which nothing of theirs starts while other users are there, and how few it has to be until
    /// something does: what others store waits for these. With 32 in row `long lists` of `soak floods` another's submission
    /// takes 3 times as long instead of 1.8 times; without that bound, which costs the owner two fifths of the rate, 7 times.
    static let mostShared = 16
    static let fewShared = 4

    private var all: Int64 = 0
    private var byOwner: [UInt32: (jobs: Int, bytes: Int64)] = [:]

    var isFull: Bool { all >= Self.most }
    var isMuch: Bool { all >= Self.much }

    func isFull(for owner: UInt32) -> Bool { (byOwner[owner]?.bytes ?? 0) >= Self.mostOfOwner }
    func jobs(of owner: UInt32) -> Int { byOwner[owner]?.jobs ?? 0 }

    mutating func add(_ bytes: Int64, of owner: UInt32) {
        all = all.saturatingAdding(bytes)
        let own = byOwner[owner] ?? (0, 0)
        byOwner[owner] = (own.jobs + 1, own.bytes.saturatingAdding(bytes))
    }

    mutating func remove(_ bytes: Int64, of owner: UInt32) {
        all -= bytes
        let own = byOwner[owner] ?? (0, 0)
        byOwner[owner] = own.jobs > 1 ? (own.jobs - 1, own.bytes - bytes) : nil
    }
}
