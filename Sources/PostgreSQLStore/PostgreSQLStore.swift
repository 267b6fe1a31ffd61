import Dispatch
import Glibc
package import JobModel
import JobStore

/// Keeps jobs in a PostgreSQL database. One connection runs rounds, and a few read (``reader``). Files are in a local
/// directory, which it locks.
///
/// One thread at a time runs a round or closes the store.
package final class PostgreSQLStore: JobStore, @unchecked Sendable {
    /// A round whose commit was sent and not answered.
    private struct Doubt {
        let round: Int64
        let error: StoreError
    }

    /// The number of this start among all on this database.
    package let life: Int64
    /// Whether the life before ended cleanly, or there was none.
    package let isAfterCleanStop: Bool
    /// Whether the machine has started again since, which ``steadyAnchor(boot:fresh:)`` finds out.
    package private(set) var isAfterBoot = false
    package let reader: PostgreSQLJobReader

    /// The directory of the engine's files.
    package var blobs: String { directory.blobs }

    private let directory: StateDirectory
    private let settings: PostgreSQLSettings
    private let transaction: PostgreSQLTransaction
    private var connection: PostgreSQLConnection?
    /// The server's process of the last connection, which must be gone before another one goes on.
    private var last: PostgreSQLConnection.Process?
    private var doubt: Doubt?
    private var round: Int64 = 0
    private var isClosed = false

    /// Names the lock of the daemon that uses the database ("DFRD" and 2).
    private static let lock: Int64 = 0x4446_5244_0000_0002
    /// How long another daemon's session may take to end after its process did.
    private static let patienceForLock = 5.0
    /// Receipts of so many rounds are deleted together.
    private static let mostReceipts: Int64 = 1000

    /// Opens the database, and makes the schema there if it is missing. Files are kept in the directory `path`.
    ///
    /// A server that cannot be reached is tried for `patience` seconds. `report` is called once for each damaged row, on any
    /// thread.
    package init(
        _ settings: PostgreSQLSettings, path: String, node: NodeDescription, patience: Double = 0,
        report: @escaping @Sendable (StoreError) -> Void = { _ in }
    ) throws(StoreError) {
        self.settings = settings
        directory = try StateDirectory(path)
        let damage = DamageReport(report)
        transaction = PostgreSQLTransaction(damage)
        reader = PostgreSQLJobReader(settings, damage)
        let connection = try Self.open(settings, patience)
        self.connection = connection
        last = connection.process
        try PostgreSQLSchema.settle(connection)
        try Self.takeLock(connection, patience: Self.patienceForLock)
        let before = try connection.rows("SELECT is_clean FROM deferd_lives ORDER BY life DESC LIMIT 1").first
        isAfterCleanStop = before.map { $0.integer(0) != 0 } ?? true
        life = try Self.register(node, instance: path, connection)
        // Receipts matter only to the life that left them.
        try connection.send("DELETE FROM deferd_receipts")
        _ = try connection.finish()
    }

    private static func open(
        _ settings: PostgreSQLSettings, _ patience: Double
    ) throws(StoreError) -> PostgreSQLConnection {
        let end = DispatchTime.now() + patience
        while true {
            do { return try PostgreSQLConnection(settings, errors: .write) } catch {
                if error.isLasting || DispatchTime.now() >= end { throw error }
            }
            usleep(500_000)
        }
    }

    /// Begins a life; returns its number.
    private static func register(
        _ node: NodeDescription, instance: String, _ connection: PostgreSQLConnection
    ) throws(StoreError) -> Int64 {
        let programs = node.programs.map { $0.json.description }
        return try connection.rows(
            """
            INSERT INTO deferd_lives (node, instance, version, programs, configuration) VALUES ($1, $2, $3, $4, $5)
            RETURNING life
            """, PostgreSQLParameters([node.name, instance, node.version, programs, node.configuration]).values
        ).number ?? 0
    }

    /// Locks the database for this daemon until the session ends.
    private static func takeLock(_ connection: PostgreSQLConnection, patience: Double) throws(StoreError) {
        let end = DispatchTime.now() + patience
        while try connection.rows("SELECT pg_try_advisory_lock(\(lock))").first?.integer(0) == 0 {
            guard DispatchTime.now() < end else {
                throw StoreError(
                    .locked,
                    "\(connection.name) has a database that another deferd uses; end that one or name another database."
                )
            }
            usleep(100_000)
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
        transaction.begin(connection)
        do {
            try body(transaction)
            try transaction.flush()
        } catch {
            if transaction.end() { rollBack(connection) }
            return .undone(error)
        }
        let hasWritten = transaction.hasWritten
        guard transaction.end() else { return .committed }
        return hasWritten ? commit(connection) : finishReading(connection)
    }

    /// The round leaves a receipt, which tells whether it was committed.
    private func commit(_ connection: PostgreSQLConnection) -> RoundEnd {
        round += 1
        do {
            if round.isMultiple(of: Self.mostReceipts) {
                try connection.send(
                    "DELETE FROM deferd_receipts WHERE life = $1 AND round < $2",
                    PostgreSQLParameters([life, round]).values)
            }
            try connection.send(
                "INSERT INTO deferd_receipts (life, round) VALUES ($1, $2)", PostgreSQLParameters([life, round]).values)
            try connection.send("COMMIT")
            _ = try connection.finish()
            return .committed
        } catch {
            guard connection.isBroken else {
                rollBack(connection)
                return .undone(error)
            }
            doubt = Doubt(round: round, error: error)
            return settle() ?? .unknown(error)
        }
    }

    private func finishReading(_ connection: PostgreSQLConnection) -> RoundEnd {
        do {
            try connection.send("COMMIT")
            _ = try connection.finish()
            return .committed
        } catch {
            return .undone(error)
        }
    }

    private func rollBack(_ connection: PostgreSQLConnection) {
        guard !connection.isBroken else { return }
        try? connection.send("ROLLBACK")
        _ = try? connection.finish()
    }

    package var tellsFates: Bool { true }

    package func settle() -> RoundEnd? {
        guard let doubt else { return nil }
        do {
            let connection = try present()
            // This commit waits for a synchronous standby, which then has the other one as well.
            round += 1
            try connection.send("BEGIN")
            let receipt = try connection.rows(
                "SELECT 1 FROM deferd_receipts WHERE life = $1 AND round = $2",
                PostgreSQLParameters([life, doubt.round]).values)
            try connection.send(
                "INSERT INTO deferd_receipts (life, round) VALUES ($1, $2)", PostgreSQLParameters([life, round]).values)
            try connection.send("COMMIT")
            _ = try connection.finish()
            self.doubt = nil
            return receipt.count > 0 ? .committed : .undone(doubt.error)
        } catch {
            if let connection, !connection.isBroken { rollBack(connection) }
            return nil
        }
    }

    /// The connection of rounds; another one where the last broke.
    private func present() throws(StoreError) -> PostgreSQLConnection {
        if let connection, connection.checkIdle() { return connection }
        connection = nil
        let new = try PostgreSQLConnection(settings, errors: .write)
        if let last { try Self.end(last, new) }
        last = new.process
        try Self.takeLock(new, patience: 0)
        connection = new
        return new
    }

    /// Ends the server's process of a broken connection, which may still commit, and waits for that.
    private static func end(
        _ process: PostgreSQLConnection.Process, _ connection: PostgreSQLConnection
    ) throws(StoreError) {
        for _ in 0..<200 {
            let left = try connection.rows(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start::text = $2",
                PostgreSQLParameters([Int64(process.id), process.start]).values)
            if left.count == 0 { return }
            usleep(10_000)
        }
        throw StoreError(.write, "\(connection.name) does not end the last session of this deferd; it is tried again.")
    }

    // MARK: The store itself

    /// The steady time at this boot. After a new boot it is `fresh`, from the time of day, but never less than before.
    package func steadyAnchor(boot: String, fresh: SteadyTime) throws(StoreError) -> SteadyTime {
        let connection = try present()
        let found = try connection.rows("SELECT anchor, boot FROM steady").first
        if let found, found.text(1) == boot { return found.integer(0) }
        isAfterBoot = found != nil
        let anchor = max(fresh, found?.integer(0) ?? fresh)
        let values = PostgreSQLParameters([anchor, boot]).values
        try connection.send(
            found == nil ? "INSERT INTO steady VALUES ($1, $2)" : "UPDATE steady SET anchor = $1, boot = $2", values)
        _ = try connection.finish()
        return anchor
    }

    /// Closes the connections; `isClean` says whether the engine has stored everything.
    package func close(isClean: Bool) {
        guard !isClosed else { return }
        isClosed = true
        reader.close()
        if isClean, let connection {
            try? connection.send(
                "UPDATE deferd_lives SET is_clean = true WHERE life = $1", PostgreSQLParameters([life]).values)
            _ = try? connection.finish()
        }
        connection = nil
        directory.unlock()
    }

    deinit { close(isClean: false) }
}
