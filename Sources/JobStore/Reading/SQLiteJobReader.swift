package import JobModel

/// Reads for clients and runs, each call in one snapshot on one of a few connections.
package final class SQLiteJobReader: SQLReader {
    let pool: ReadingPool
    let directory: StateDirectory
    package let damage: DamageReport

    init(_ pool: ReadingPool, _ damage: DamageReport, _ directory: StateDirectory) {
        self.pool = pool
        self.damage = damage
        self.directory = directory
    }

    package func read<Value>(_ body: (Snapshot) throws(StoreError) -> Value) throws(StoreError) -> Value {
        do throws(StoreError) {
            return try pool.read { connection throws(StoreError) in
                try body(Snapshot(connection: connection, damage: damage))
            }
        } catch {
            if error.code == .damaged { damage.tell(error, once: error.message) }
            throw error
        }
    }
}
