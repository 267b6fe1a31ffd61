import JobModel

/// Queues as rows of a table.
enum QueueTable {
    static func lines(_ queues: [JSON]) -> [String] {
        let counts = ["running", "queued", "scheduled"]
        var table = Table(
            [Table.Column("QUEUE"), Table.Column("LIMIT", isNumber: true)]
                + counts.map { Table.Column($0.uppercased(), isNumber: true) } + [Table.Column("STATE")])
        for queue in queues {
            table.append(
                [queue["queue"]?.string?.sanitized ?? "?", queue["concurrency"]?.int.map(String.init) ?? ""]
                    + counts.map { queue[$0]?.int.map(String.init) ?? "" }
                    + [queue["suspended"]?.bool == true ? "suspended" : "open"])
        }
        return table.lines()
    }
}
