import JobModel

/// Schedules whose next job is being read and stored: their specs are in memory meanwhile.
///
/// An owner may have as much of them as is left to others, so that nobody waits for all of another's; and of large ones,
/// which take long to read and to check, one at a time, so that an owner's keep one processor busy at most.
struct AdvancingSchedules {
    private struct Part {
        var schedules = 0
        var bytes = 0
        var large = 0
    }

    static let most = 256
    /// Bytes of specs.
    static let mostBytes = 4 << 20
    /// Bytes of a spec that is large.
    static let large = 16 << 10

    private var all = Part()
    private var byOwner: [UInt32: Part] = [:]
    /// Owners with a schedule that could not be read or stored: theirs wait, and nobody else's.
    private var paused: Set<UInt32> = []

    mutating func pause(_ owner: UInt32) { paused.insert(owner) }
    mutating func endPauses() { paused = [] }

    /// Whether one more of `owner` may be read.
    func admits(_ owner: UInt32) -> Bool {
        guard !paused.contains(owner) else { return false }
        let own = byOwner[owner] ?? Part()
        return own.large == 0 && own.schedules < Self.most - all.schedules && own.bytes < Self.mostBytes - all.bytes
    }

    mutating func add(_ row: Schedule) { count(row, 1) }

    mutating func remove(_ row: Schedule) { count(row, -1) }

    private mutating func count(_ row: Schedule, _ sign: Int) {
        all.schedules += sign
        all.bytes += sign * row.specSize
        let large = row.specSize > Self.large ? sign : 0
        var own = byOwner[row.key.owner] ?? Part()
        own.schedules += sign
        own.bytes += sign * row.specSize
        own.large += large
        byOwner[row.key.owner] = own.schedules > 0 ? own : nil
    }
}
