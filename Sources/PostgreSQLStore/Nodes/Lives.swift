import Glibc
import JobModel

/// What this node has seen of the other nodes' lives.
///
/// The clocks of nodes and of the server may differ and leap, so a life is judged by this machine's time since its beat last
/// moved. Time in which nothing was looked at does not count, as the others could not reach the database either, or this
/// node stood still.
struct Lives {
    struct Row {
        let life: Int64
        let beat: Int64
        /// Milliseconds after which it counts as gone.
        let lease: Int64
        let isOver: Bool
        let node: String
        /// The names of its programs, an array in JSON.
        let programs: [UInt8]
    }

    /// The other nodes that have each program.
    private(set) var programs: [String: [String]] = [:]
    private var descriptions: [String: [UInt8]] = [:]
    /// Whether there were other nodes in the last look.
    var hasOthers: Bool { !seen.isEmpty }

    /// The longest time between two looks that counts, in milliseconds.
    private static let longestGap: Int64 = 2000

    private var seen: [Int64: (beat: Int64, silence: Int64)] = [:]
    private var lastLook: Int64?

    /// Looks at the rows of the other lives; returns those that have been silent for longer than their lease.
    mutating func look(at rows: [Row], now: Int64) -> [Row] {
        let gap = max(0, min(now - (lastLook ?? now), Self.longestGap))
        lastLook = now
        var present: [Int64: (beat: Int64, silence: Int64)] = [:]
        var gone: [Row] = []
        for row in rows where !row.isOver {
            let before = seen[row.life]
            let silence = before?.beat == row.beat ? (before?.silence ?? 0) + gap : 0
            present[row.life] = (row.beat, silence)
            if silence > row.lease { gone.append(row) }
        }
        seen = present
        let found: [String: [UInt8]] = rows.reduce(into: [:]) { if !$1.isOver { $0[$1.node] = $1.programs } }
        if found != descriptions {
            descriptions = found
            programs = found.sorted { $0.key < $1.key }.reduce(into: [:]) { programs, node in
                let names = JSON(stored: node.value).array ?? []
                for case .string(let name) in names { programs[name, default: []].append(node.key) }
            }
        }
        return gone
    }

    /// The life of a node of this name that another instance began, once its beat has not moved for its lease; nil if there is
    /// none, or it moves. Where that instance has lost its state directory and there is no other node, only a start finds out.
    static func silentNamesake(
        of name: String, instance: String, _ connection: PostgreSQLConnection
    ) throws(StoreError) -> Row? {
        var lives = Lives()
        var first: Row?
        while true {
            try connection.begin()
            let found = try connection.rows(
                "SELECT life, beat, lease FROM deferd_lives WHERE node = $1 AND instance <> $2 AND NOT is_over",
                [name, instance]
            ).first
            try connection.commit()
            guard let found else { return nil }
            let row = Row(
                life: found.integer(0), beat: found.integer(1), lease: found.integer(2), isOver: false, node: name,
                programs: [])
            if let first, (first.life, first.beat) != (row.life, row.beat) { return nil }
            first = row
            if !lives.look(at: [row], now: now()).isEmpty { return row }
            usleep(500_000)
        }
    }

    /// Milliseconds since the machine started, which no one sets.
    static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}
