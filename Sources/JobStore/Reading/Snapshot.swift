package import JobModel

/// A snapshot of one connection.
package struct Snapshot: SQLSnapshot {
    let connection: SQLiteConnection
    package let damage: DamageReport

    package static let selectJobs = """
        SELECT \(JobColumns.selected), \(JobColumns.document), \
        (SELECT template FROM templates WHERE templates.job = parent AND templates.list = jobs.list) FROM jobs
        """
    package static let step = 1

    package static func isAmong(_ ids: [JobID]) -> (condition: String, ids: any Bindable) {
        // The other form takes a third more time.
        ids.count == 1 ? ("= ?1", ids[0]) : ("IN (SELECT value FROM json_each(?1))", "\(ids)")
    }

    package static func name(_ text: String) -> any Bindable { text }

    package func rows<Value>(
        _ sql: String, _ values: [(any Bindable)?], atMost limit: Int,
        _ read: (PreparedStatement) -> Value?
    ) throws(StoreError) -> [Value] {
        try connection.statement(sql, values).rows(atMost: limit, read)
    }
}
