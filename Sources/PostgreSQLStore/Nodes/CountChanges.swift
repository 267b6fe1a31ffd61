import JobModel

/// The counts of jobs, which nearly each round changes. A round adds rows to a table of changes, and a beat moves these to the
/// table of counts: a row that each round updates would leave a version for each, and all later rounds would pass these as long
/// as another session keeps an old snapshot.
enum CountChanges {
    private static let all = """
        (SELECT owner, queue, state, jobs, bytes, changed FROM counts UNION ALL \
        SELECT owner, queue, state, jobs, bytes, number FROM count_changes) AS every
        """

    /// Those of rounds after a number, in order.
    static let recent = "SELECT owner, queue, state, jobs, bytes FROM \(all) WHERE changed > $1 ORDER BY changed"
    /// The present counts.
    static let latest = """
        SELECT * FROM (SELECT DISTINCT ON (owner, queue, state) owner, queue, state, jobs, bytes FROM \(all) \
        ORDER BY owner, queue, state, changed DESC) AS latest WHERE jobs > 0
        """
    static let insert = "INSERT INTO count_changes (owner, queue, state, jobs, bytes, number) SELECT * FROM"

    /// Moves all changes, which are of rounds after `number`. Without other nodes, which have to see that no job is left, empty
    /// counts go.
    static func fold(_ connection: PostgreSQLConnection, after number: Int64, hasOthers: Bool) throws(StoreError) {
        try connection.send(
            """
            WITH changes AS (DELETE FROM count_changes WHERE number > $1 RETURNING *) \
            INSERT INTO counts (owner, queue, state, jobs, bytes, changed) \
            SELECT DISTINCT ON (owner, queue, state) owner, queue, state, jobs, bytes, number FROM changes \
            ORDER BY owner, queue, state, number DESC ON CONFLICT (owner, queue, state) \
            DO UPDATE SET jobs = excluded.jobs, bytes = excluded.bytes, changed = excluded.changed
            """, [number])
        if !hasOthers { try connection.send("DELETE FROM counts WHERE jobs = 0") }
    }
}
