import ArgumentParser
import JobClient
import JobModel

/// Lists the queues.
struct QueuesCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "queues", abstract: "List the queues.",
        discussion: """
            LIMIT is how many jobs of the queue run at a time, USER how many of those may be one user's.

            Example: deferctl queues
            """)

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try invocation.show(queues: try await invocation.withDaemon { try await $0.queues() })
    }
}

/// Suspends a queue.
struct SuspendCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspend", abstract: "Start no more jobs of a queue.",
        discussion: """
            Jobs that run go on, and new ones are taken. Only administrators may do this.

            Example: deferctl suspend default
            """)

    @OptionGroup var global: GlobalOptions
    @Argument(help: "The queue's name.", completion: LiveCompletion.queues) var queue: String

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.setSuspended(true, queue: queue)
    }
}

/// Resumes a queue.
struct ResumeCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Start jobs of a suspended queue again.",
        discussion: """
            Only administrators may do this.

            Example: deferctl resume default
            """)

    @OptionGroup var global: GlobalOptions
    @Argument(help: "The queue's name.", completion: LiveCompletion.queues) var queue: String

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.setSuspended(false, queue: queue)
    }
}

extension Invocation {
    /// Changes an existing queue, and shows it; a mistyped name must not make a new queue.
    fileprivate func setSuspended(_ isSuspended: Bool, queue: String) async throws -> ExitStatus {
        let answer = try await withDaemon { client in
            let names = try await client.queues().compactMap { $0["queue"]?.string }
            guard names.contains(queue) else {
                let known = names.joined(separator: ", ")
                throw CommandFailure(
                    .badData, "There is no queue \"\(queue)\"; there are \(known). See them with: deferctl queues")
            }
            return try await client.setQueue(queue, isSuspended: isSuspended)
        }
        return try show(queues: [answer])
    }

    fileprivate func show(queues: [JSON]) throws -> ExitStatus {
        try show(queues, as: QueueTable.lines(queues, console.format))
        return .ok
    }
}

/// Queues as rows of a table.
enum QueueTable {
    static func lines(_ queues: [JSON], _ format: TextFormat = TextFormat()) -> [String] {
        let counts = ["running", "queued", "scheduled"]
        // What one user gets; a daemon of an earlier version does not tell it.
        let limits = ["concurrency"] + (queues.contains { $0["perUser"] != nil } ? ["perUser"] : [])
        var table = Table(
            [Table.Column("QUEUE", cut: .end, least: 7), .number("LIMIT", rank: 2)]
                + limits.dropFirst().map { _ in .number("USER", rank: 3) } + [
                    .number("RUNNING"), .number("QUEUED"), .number("SCHEDULED", rank: 1), Table.Column("STATE"),
                ])
        for queue in queues {
            let state = queue["suspended"]?.bool == true ? "suspended" : "open"
            table.append(
                [StyledText(queue.text("queue") ?? "?")] + (limits + counts).map { StyledText(queue.number($0)) }
                    + [StyledText(state, TextStyle(state: state))])
        }
        return table.lines(format)
    }
}
