import Dispatch
import Glibc
package import JobModel
import JobStore

/// Keeps jobs in a PostgreSQL database, which other nodes may share. One connection runs rounds, a few read (``reader``),
/// and a few keep files (``archive``). A local directory, which it locks, has the files that sources are writing.
///
/// One thread at a time runs a round or closes the store.
package final class PostgreSQLStore: JobStore, @unchecked Sendable {
    /// A round whose commit was sent and not answered.
    private struct Doubt {
        let life: Int64
        let round: Int64
        let heard: Int64
        let error: StoreError
    }

    /// The number of this start among all on this database, or of the last time that the node was taken to be gone.
    package internal(set) var life: Int64 = 0
    /// Whether no other node is there, and the last one stopped in order.
    package private(set) var isAfterCleanStop = false
    /// Whether the machine has started again since, which ``steadyAnchor(boot:fresh:)`` finds out.
    package private(set) var isAfterBoot = false
    /// Milliseconds since the first of the present nodes began.
    package private(set) var upFor: Int64 = 0
    package let reader: PostgreSQLJobReader
    package let archive: PostgreSQLBlobArchive
    /// Whether a pooler is between the node and the server, so that it does not hear at once what others change.
    package let isPooled: Bool

    /// The directory of the engine's files, until they are in the ``archive``. Lives in the database have other numbers than
    /// those in the directory.
    package var blobs: String { directory.path + "/spool" }

    private let directory: StateDirectory
    let settings: PostgreSQLSettings
    private let node: NodeDescription
    /// Tells this state directory from those of other nodes.
    let instance: String
    let transaction: PostgreSQLTransaction
    let listener: NewsListener
    private let connector: PostgreSQLConnector
    var connection: PostgreSQLConnection?
    private var doubt: Doubt?
    private var round: Int64 = 0
    private var isClosed = false

    // Nodes.
    private(set) var lives = Lives()
    /// The number of the last round of which the node has heard.
    private var heard: Int64 = 0
    /// When the last beat was committed, and the numbers of rounds at those before.
    var lastBeat: Int64 = 0
    private var beats: [(time: Int64, number: Int64)] = []
    /// Changes of counts up to this round are in the table of counts.
    private var folded: Int64 = 0
    /// Whether the next round begins another life, and whether the node itself gave up the runs of this one.
    var isLifeOver = false
    var hasGivenUp = false
    /// The steady time when the machine started.
    private var anchor: SteadyTime?
    /// Whether the last commit has news for others, and when they were told last.
    var hasNews = false
    var lastAnnouncement: Int64 = 0
    /// What other nodes are to be told after this round.
    var untold: [String] = []

    /// Receipts of so many rounds are deleted together.
    private static let mostReceipts: Int64 = 1000
    /// Milliseconds for which others can read news.
    private static let newsAge: Int64 = 600_000

    /// Opens the database, and makes the schema there if it is missing. Local files are kept in the directory `path`.
    ///
    /// A server that cannot be reached is tried for `patience` seconds. A node of the same name in another directory has until
    /// the end of its lease to show that it is alive. `report` is called once for each damaged row, on any thread.
    package init(
        _ settings: PostgreSQLSettings, path: String, node: NodeDescription, patience: Double = 0,
        report: @escaping @Sendable (StoreError) -> Void = { _ in }
    ) throws(StoreError) {
        (self.settings, self.node) = (settings, node)
        directory = try StateDirectory(path)
        instance = try directory.identity()
        let damage = DamageReport(report)
        transaction = PostgreSQLTransaction(damage, node: node.name)
        reader = PostgreSQLJobReader(settings, damage)
        listener = NewsListener(settings, instance: instance)
        archive = PostgreSQLBlobArchive(settings)
        connector = PostgreSQLConnector(settings, errors: .write)
        let connection = try Self.open(connector, patience)
        self.connection = connection
        isPooled = connection.isPooled
        // The start reads too.
        reader.pool.add(try Self.open(connector, patience))
        try PostgreSQLSchema.settle(connection)
        try beginLife(
            connection, ending: try Lives.silentNamesake(of: node.name, instance: instance, connection))
    }

    private static func open(
        _ connector: PostgreSQLConnector, _ patience: Double
    ) throws(StoreError) -> PostgreSQLConnection {
        let end = DispatchTime.now() + patience
        while true {
            do { return try connector.connect() } catch {
                if error.isLasting || DispatchTime.now() >= end { throw error }
            }
            usleep(500_000)
        }
    }

    // MARK: Lives

    /// Begins a life, and ends the last one, and `silent`. A start ends all lives of this state directory. Later, the other ones
    /// belong to a copy of the directory; the two would end each other in turn.
    private func beginLife(
        _ connection: PostgreSQLConnection, ending silent: Lives.Row? = nil
    ) throws(StoreError) {
        do throws(StoreError) {
            try Turn.begin(connection)
            if let silent { try Turn.end(silent, connection) }
            try connection.send(
                """
                UPDATE deferd_lives SET is_over = true, is_clean = is_clean OR $2 <> 0 \
                WHERE instance = $1 AND NOT is_over AND $3 IN (0, life)
                """, [instance, hasGivenUp, life])
            try connection.send(
                """
                SELECT bool_or(node = $1), count(*), \
                max(extract(epoch FROM clock_timestamp() - started) * 1000)::bigint FROM deferd_lives WHERE NOT is_over
                """, [node.name], isWanted: true)
            try connection.send(
                "SELECT count(*) FROM deferd_lives WHERE is_over AND NOT is_taken AND NOT is_clean", isWanted: true)
            let found = try connection.finish()
            guard let others = found.first?.first, others.integer(0) == 0 else {
                throw StoreError(
                    .locked,
                    "\(connection.name) has a node of the name \(node.name) already; give this one another node.name, "
                        + "or wait until the other one is gone.")
            }
            isAfterCleanStop = others.integer(1) == 0 && found.last?.number == 0
            upFor = max(0, others.integer(2))
            try connection.send("SELECT nextval('rounds')", isWanted: true)
            let life =
                try connection.rows(
                    """
                    INSERT INTO deferd_lives (node, instance, version, programs, configuration, lease) \
                    VALUES ($1, $2, $3, $4, $5, $6) RETURNING life
                    """,
                    [
                        node.name, instance, node.version, node.programs.json.description, node.configuration,
                        Int64(settings.lease * 1000),
                    ]
                ).number ?? 0
            // Receipts matter to lives in doubt, which last for a lease at most.
            for table in ["deferd_receipts", "news"] {
                try connection.send(
                    """
                    DELETE FROM \(table) WHERE life IN (\
                    SELECT life FROM deferd_lives WHERE is_taken AND seen < clock_timestamp() - interval '1 day')
                    """)
            }
            try connection.send(
                "DELETE FROM deferd_lives WHERE is_taken AND seen < clock_timestamp() - interval '1 day'")
            let number = try connection.rows("SELECT nextval('rounds')").number ?? 0
            try connection.commit()
            (self.life, heard, lives, isLifeOver, hasGivenUp) = (life, number, Lives(), false, false)
            (lastBeat, beats) = (Lives.now(), [])
            // News before that are not read.
            transaction.starts = IndexStarts()
        } catch {
            connection.rollBack()
            throw error
        }
    }

    // MARK: Rounds

    package func round(_ body: (any JobTransaction) throws(StoreError) -> Void) -> RoundEnd {
        guard !isClosed else { return .undone(.closed) }
        let connection: PostgreSQLConnection
        do throws(StoreError) {
            if let doubt { throw doubt.error }
            connection = try present()
        } catch {
            return .undone(error)
        }
        let beat: [(any Bindable)?]? = mustBeat ? [life, anchor?.saturatingAdding(Lives.now())] : nil
        let turn: Turn
        do throws(StoreError) {
            turn = try Turn(connection, life: life, heard: heard, lives: &lives, beat: beat)
            if beat != nil {
                try trimNews(turn.number, connection)
                try CountChanges.fold(connection, after: folded, hasOthers: turn.hasOthers)
            }
        } catch {
            giveUp(connection, error)
            isLifeOver = isLifeOver || error.underlying is Turn.IsGone
            return .undone(error)
        }
        transaction.begin(connection, turn)
        defer {
            transaction.end()
            tell(untold)
            untold = []
        }
        do {
            try body(transaction)
            try transaction.flush(life: life)
        } catch {
            connection.rollBack()
            transaction.starts = IndexStarts()
            return .undone(error)
        }
        let end = transaction.hasWritten ? commit(connection, turn) : finishReading(connection)
        if case .committed = end {
            if transaction.hasAskedForNews { heard = turn.heard }
            hasNews = hasNews || turn.hasOthers && transaction.hasWritten
            if beat != nil {
                lastBeat = Lives.now()
                beats.append((lastBeat, turn.number))
                // It may have counted after that itself.
                folded = turn.number - 1
            }
        } else {
            transaction.starts = IndexStarts()
        }
        return end
    }

    private var mustBeat: Bool { Lives.now() - lastBeat >= Int64(settings.lease * 1000) / 3 }

    /// Deletes news that every life that goes on has heard long ago.
    private func trimNews(_ number: Int64, _ connection: PostgreSQLConnection) throws(StoreError) {
        let now = Lives.now()
        guard let old = beats.last(where: { now - $0.time > Self.newsAge }) else { return }
        beats.removeAll { $0.time < old.time }
        try connection.send("DELETE FROM news WHERE number < $1", [old.number])
    }

    /// The round leaves a receipt, which tells whether it was committed.
    private func commit(_ connection: PostgreSQLConnection, _ turn: Turn) -> RoundEnd {
        round += 1
        do {
            if round.isMultiple(of: Self.mostReceipts) {
                try connection.send("DELETE FROM deferd_receipts WHERE life = $1 AND round < $2", [life, round])
            }
            try connection.send("INSERT INTO deferd_receipts (life, round) VALUES ($1, $2)", [life, round])
            try connection.commit()
            return .committed
        } catch {
            guard connection.isBroken else {
                connection.rollBack()
                return .undone(error)
            }
            let heard = transaction.hasAskedForNews ? turn.heard : heard
            doubt = Doubt(life: life, round: round, heard: heard, error: error)
            return settle() ?? .unknown(error)
        }
    }

    private func finishReading(_ connection: PostgreSQLConnection) -> RoundEnd {
        do {
            try connection.commit()
            return .committed
        } catch {
            giveUp(connection, error)
            return .undone(error)
        }
    }

    package func settle() -> RoundEnd? {
        guard let doubt else { return nil }
        do {
            let connection = try present()
            round += 1
            // The round in doubt holds the lock until it is over. This commit waits for a synchronous standby, which then
            // has the other one as well.
            try Turn.begin(connection)
            let receipt = try connection.rows(
                "SELECT 1 FROM deferd_receipts WHERE life = $1 AND round = $2",
                [doubt.life, doubt.round])
            let over = try connection.rows("SELECT 1 FROM deferd_lives WHERE life = $1 AND is_over", [life])
            try connection.send("INSERT INTO deferd_receipts (life, round) VALUES ($1, $2)", [life, round])
            try connection.commit()
            self.doubt = nil
            // What the round would begin must not begin.
            if over.count > 0 { try? beginLife(connection) }
            guard receipt.count > 0 else { return .undone(doubt.error) }
            heard = doubt.heard
            return .committed
        } catch {
            if let connection { giveUp(connection, error) }
            return nil
        }
    }

    /// Ends a transaction in which a statement failed; another node that stands still must not keep the others waiting.
    private func giveUp(_ connection: PostgreSQLConnection, _ error: StoreError) {
        connection.rollBack()
        if error.failure?.isTimeout == true { Turn.endStalled(connection, after: 2 * settings.milliseconds) }
    }

    /// The connection of rounds; another one where the last broke.
    private func present() throws(StoreError) -> PostgreSQLConnection {
        if let connection, connection.checkIdle() {
            if isLifeOver, doubt == nil { try beginLife(connection) }
            return connection
        }
        connection = nil
        let new = try connector.connect()
        connection = new
        if isLifeOver, doubt == nil { try beginLife(new) }
        return new
    }

    // MARK: The store itself

    /// The steady time at this boot, which all nodes share: that of the others, or the last one of this boot. After a new
    /// boot of the only node it is `fresh`, from the time of day, but never less than before.
    package func steadyAnchor(boot: String, fresh: SteadyTime) throws(StoreError) -> SteadyTime {
        let connection = try present()
        do throws(StoreError) {
            try Turn.begin(connection)
            let known = try connection.rows("SELECT anchor FROM steady WHERE boot = $1", [boot]).number
            let present = try connection.rows(
                """
                SELECT steady + (extract(epoch FROM least(greatest(clock_timestamp() - seen, interval '0'), \
                interval '1 minute')) * 1000)::bigint, boot = $2, is_over FROM deferd_lives \
                WHERE steady IS NOT NULL AND life <> $1 ORDER BY is_over, steady DESC LIMIT 1
                """, [life, boot]
            ).first
            let others = present.map { $0.integer(0).saturatingSubtracting(Lives.now()) }
            let isAlone = present.map { $0.integer(2) != 0 } ?? true
            let anchor: SteadyTime
            if let known, isAlone || present?.integer(1) != 0 {
                anchor = known
            } else if let others, !isAlone {
                anchor = others
            } else {
                isAfterBoot = others != nil
                anchor = max(fresh, others ?? fresh)
            }
            try connection.send(
                "INSERT INTO steady VALUES ($1, $2) ON CONFLICT (boot) DO UPDATE SET anchor = excluded.anchor",
                [boot, anchor])
            try connection.send(
                "UPDATE deferd_lives SET boot = $2, steady = $3, seen = clock_timestamp() WHERE life = $1",
                [life, boot, anchor.saturatingAdding(Lives.now())])
            try connection.commit()
            self.anchor = anchor
            return anchor
        } catch {
            connection.rollBack()
            throw error
        }
    }

    /// Closes the connections; `isClean` says whether the engine has stored everything.
    package func close(isClean: Bool) {
        guard !isClosed else { return }
        isClosed = true
        listener.close()
        reader.close()
        archive.close()
        if isClean, let connection {
            try? connection.begin()
            try? connection.send(
                "UPDATE deferd_lives SET is_clean = true, is_over = true WHERE life = $1 AND NOT is_over",
                [life])
            try? connection.commit()
        }
        connection = nil
        directory.unlock()
    }

    deinit { close(isClean: false) }
}

extension StateDirectory {
    /// A name that no other state directory has, made once.
    fileprivate func identity() throws(StoreError) -> String {
        let file = path + "/deferd.node"
        let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw StoreError.unwritable(file) }
        defer { Glibc.close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 32)
        if read(descriptor, &bytes, bytes.count) == bytes.count { return String(decoding: bytes, as: UTF8.self) }
        let digits = Array("0123456789abcdef".utf8)
        for index in bytes.indices { bytes[index] = digits[Int.random(in: 0..<16)] }
        guard pwrite(descriptor, bytes, bytes.count, 0) == bytes.count, fsync(descriptor) == 0 else {
            throw StoreError.unwritable(file)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
