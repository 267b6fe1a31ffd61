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
                throw CommandFailure(
                    .badData, "There is no queue \"\(queue)\"; there are \(known). See them with: deferctl queues")
            }
            return try await client.setQueue(queue, isSuspended: isSuspended)
        }
        if writesJSON {
            try console.line(answer)
        } else {
            try console.lines(
                QueueTable.lines([answer], width: console.width, mark: console.cutMark, palette: console.palette))
        }
        return .ok
    }
}
