import Glibc
import JobModel
import JobStore

/// The beginning of a round. Rounds of all nodes follow each other, as each holds one lock of the database until its end: so
/// what a node reads in its round is what it decides about, and its news are in the order of the commits.
struct Turn {
    /// Of this round, higher than those of all rounds before.
    let number: Int64
    /// The number up to which the node has heard of others, once this round is committed.
    let heard: Int64
    let news: News?
    /// No job before this one has become ready in the rounds of the news.
    let firstReady: ReadyPosition?
    /// No job waits for an earlier time that did not do so before.
    let firstDue: SteadyTime?
    /// Whether other nodes must be told what the round changes.
    let hasOthers: Bool
    /// Whether the round has written already.
    let hasWritten: Bool

    /// Names the lock ("DFRD" and 2).
    static let lock: Int64 = 0x4446_5244_0000_0002
    /// Records of news that a round takes in.
    private static let mostRecords = 256

    /// Begins a transaction in which this node alone decides. With `beat`, the node is seen.
    init(
        _ connection: PostgreSQLConnection, life: Int64, heard: Int64, lives: inout Lives, beat: [(any Bindable)?]?
    ) throws(StoreError) {
        try Self.begin(connection)
        if let beat {
            try connection.send(
                """
                UPDATE deferd_lives SET beat = beat + 1, seen = clock_timestamp(), steady = $2 \
                WHERE life = $1 AND NOT is_over
                """, beat)
        }
        try connection.send("SELECT nextval('rounds')", isWanted: true)
        try connection.send(
            "SELECT life, beat, lease, is_over, node, programs FROM deferd_lives WHERE NOT is_taken OR life = $1",
            [life], isWanted: true)
        try connection.send(
            """
            SELECT number, flags, jobs, work, ready_priority, ready_id, due FROM news WHERE number > $1 AND life <> $2 \
            ORDER BY number LIMIT \(Self.mostRecords)
            """, [heard, life], isWanted: true)
        try connection.send(CountChanges.recent, [heard], isWanted: true)
        let found = try connection.finish()
        guard found.count == 4, let number = found[0].number else {
            throw StoreError(.read, "\(connection.name) did not answer the start of a round; it is tried again.")
        }
        self.number = number
        let rows = found[1].map { row in
            Lives.Row(
                life: row.integer(0), beat: row.integer(1), lease: row.integer(2), isOver: row.integer(3) != 0,
                node: row.text(4) ?? "", programs: row.bytes(5) ?? [])
        }
        guard rows.contains(where: { $0.life == life && !$0.isOver }) else { throw Self.isGone }
        let others = rows.filter { $0.life != life }
        let gone = lives.look(at: others, now: Lives.now())
        for row in gone { try Self.end(row, connection) }
        hasWritten = !gone.isEmpty
        hasOthers = lives.hasOthers
        var news = News()
        news.hasLostRuns = !gone.isEmpty || others.contains(where: \.isOver)
        var jobs: Set<JobID> = []
        var firstReady: ReadyPosition?
        var firstDue: SteadyTime?
        for row in 0..<found[2].count {
            let row = found[2][row]
            news.hasQueues = news.hasQueues || row.integer(1) & SharedSettings.queues.rawValue != 0
            news.hasSchedules = news.hasSchedules || row.integer(1) & SharedSettings.schedules.rawValue != 0
            jobs.formUnion(row.numbers(2))
            news.work += row.numbers(3)
            if let priority = row.optionalInteger(4) {
                let position = ReadyPosition(priority: Int(priority), id: row.integer(5))
                firstReady = min(firstReady ?? position, position)
            }
            if let due = row.optionalInteger(6) { firstDue = min(firstDue ?? due, due) }
        }
        (self.firstReady, self.firstDue) = (firstReady, firstDue)
        news.jobs = jobs.sorted()
        news.hasMore = found[2].count == Self.mostRecords
        self.heard = news.hasMore ? found[2][found[2].count - 1].integer(0) : number
        guard news.hasLostRuns || found[2].count > 0 else {
            self.news = nil
            return
        }
        for row in 0..<found[3].count {
            if let (key, count) = try? CountKey.count(found[3][row]) { news.counts[key] = count }
        }
        self.news = news
    }

    /// Begins a transaction that waits for its turn.
    static func begin(_ connection: PostgreSQLConnection) throws(StoreError) {
        try connection.begin()
        try connection.send("SELECT pg_advisory_xact_lock(\(lock))")
    }

    /// Ends the life of a node that was silent, unless it has been seen since. Its runs are taken over in a later round.
    static func end(_ row: Lives.Row, _ connection: PostgreSQLConnection) throws(StoreError) {
        try connection.send(
            "UPDATE deferd_lives SET is_over = true WHERE life = $1 AND beat = $2", [row.life, row.beat])
    }

    /// Ends the session of a node that stands still in the middle of a round for so many milliseconds, so that the others go
    /// on. One that waits for a standby is not ended, as that would go on with the next one.
    static func endStalled(_ connection: PostgreSQLConnection, after milliseconds: Int) {
        guard !connection.isBroken else { return }
        _ = try? connection.rows(
            """
            SELECT pg_terminate_backend(a.pid) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid) \
            WHERE l.locktype = 'advisory' AND l.granted AND l.pid <> pg_backend_pid() AND l.objsubid = 1 \
            AND (l.classid::bigint << 32 | l.objid::bigint) = \(lock) \
            AND clock_timestamp() - a.xact_start > make_interval(secs => $1::bigint / 1000.0) \
            AND a.wait_event IS DISTINCT FROM 'SyncRep'
            """, [milliseconds])
    }

    /// Underlies the error of a round of a node that others took to be gone.
    struct IsGone: Error {}

    private static let isGone = StoreError(
        .write, "Other nodes have taken over the jobs of this one, as they had not heard of it for too long.",
        underlying: IsGone())
}

extension PostgreSQLRow {
    /// Numbers stored one behind the other.
    fileprivate func numbers(_ column: Int32) -> [Int64] {
        withBytes(column) { bytes in
            stride(from: 0, to: bytes.count - 7, by: 8).map { start in
                Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: start, as: Int64.self))
            }
        }
    }
}
