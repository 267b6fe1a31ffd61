import JobModel

/// Queues as rows of a table.
enum QueueTable {
    static func lines(
        _ queues: [JSON], width: Int? = nil, mark: String = "…", palette: Palette = .none
    ) -> [String] {
        let counts = ["running", "queued", "scheduled"]
        // What one user gets; a daemon of an earlier version does not tell it.
        let limits = ["concurrency"] + (queues.contains { $0["perUser"] != nil } ? ["perUser"] : [])
        var table = Table(
            [Table.Column("QUEUE", cut: .end, least: 7), Table.Column("LIMIT", isNumber: true, rank: 2)]
                + limits.dropFirst().map { _ in Table.Column("USER", isNumber: true, rank: 3) } + [
                    Table.Column("RUNNING", isNumber: true), Table.Column("QUEUED", isNumber: true),
                    Table.Column("SCHEDULED", isNumber: true, rank: 1), Table.Column("STATE"),
                ])
        for queue in queues {
            let state = queue["suspended"]?.bool == true ? "suspended" : "open"
            table.append(
                [StyledText(queue["queue"]?.string?.sanitized ?? "?")]
                    + (limits + counts).map { StyledText(queue[$0]?.int.map(String.init) ?? "") }
                    + [StyledText(state, TextStyle(state: state))])
        }
        return table.lines(width: width, mark: mark, palette: palette)
    }
}
