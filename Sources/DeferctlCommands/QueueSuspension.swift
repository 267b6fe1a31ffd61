import JobClient
import JobModel

/// Suspending and resuming queues.
extension Invocation {
    /// Changes an existing queue, and shows it; a mistyped name must not make a new queue.
    func setSuspended(_ isSuspended: Bool, queue: String) async throws -> ExitStatus {
        let answer = try await withDaemon { client in
            let names = try await client.queues().compactMap { $0["queue"]?.string }
            guard names.contains(queue) else {
                let known = names.joined(separator: ", ")
                throw CommandFailure(.badData, "There is no queue \"\(queue)\"; there are \(known).")
            }
            return try await client.setQueue(queue, isSuspended: isSuspended)
        }
        if writesJSON {
            try console.line(answer)
        } else {
            try console.data.write(QueueTable.lines([answer]).map { $0 + "\n" }.joined())
        }
        return .ok
    }
}

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
