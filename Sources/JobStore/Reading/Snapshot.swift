package import JobModel

/// A snapshot of one connection.
package struct Snapshot: SQLSnapshot {
    let connection: SQLiteConnection
    package let damage: DamageReport

    package static let selectJobs = """
        SELECT \(JobColumns.selected), \(JobColumns.document), \
        (SELECT template FROM templates WHERE templates.job = parent AND templates.list = jobs.list) FROM jobs
        """
    package static let isAmong = "IN (SELECT value FROM json_each(?1))"

    package static func parameter(_ numbers: [Int64]) -> any Bindable { "\(numbers)" }

    package static func name(_ text: String) -> any Bindable { text }

    package func rows<Value>(
        _ sql: String, _ values: [(any Bindable)?], atMost limit: Int,
        _ read: (PreparedStatement) -> Value?
    ) throws(StoreError) -> [Value] {
        try connection.statement(sql, values).rows(atMost: limit, read)
    }
}
