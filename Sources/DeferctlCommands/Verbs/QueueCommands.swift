import ArgumentParser
import JobClient
import JobModel

struct QueuesCommand: DaemonCommand {
    static let configuration = verb(
        "queues", "List the queues.", example: "deferctl queues",
        """
        LIMIT is the number of jobs that may run at the same time, USER the number for one user.
        """)

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let queues = try await invocation.withDaemon { try await $0.queues() }
        return try invocation.show(queues, as: QueueTable.lines(queues, invocation.console.format))
    }
}

struct SuspendCommand: DaemonCommand {
    static let configuration = verb(
        "suspend", "Start no more jobs of a queue.", example: "deferctl suspend default",
        """
        Running jobs go on, and new jobs are accepted. Only for administrators.
        """)

    @OptionGroup var global: GlobalOptions
    @Argument(help: "The queue's name.", completion: LiveCompletion.queues) var queue: String

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.setSuspended(true, queue: queue)
    }
}

struct ResumeCommand: DaemonCommand {
    static let configuration = verb(
        "resume", "Start jobs of a suspended queue again.", example: "deferctl resume default",
        """
        Only for administrators.
        """)

    @OptionGroup var global: GlobalOptions
    @Argument(help: "The queue's name.", completion: LiveCompletion.queues) var queue: String

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.setSuspended(false, queue: queue)
    }
}

extension Invocation {
    /// Changes an existing queue; a mistyped name must not create a new one.
    fileprivate func setSuspended(_ isSuspended: Bool, queue: String) async throws -> ExitStatus {
        let answer = try await withDaemon { client in
            let names = try await client.queues().compactMap { $0["queue"]?.string }
            guard names.contains(queue) else {
                throw CommandFailure(
                    .badData,
                    "There is no queue \"\(queue)\", only \(names.joined(separator: ", ")). See them with: deferctl queues"
                )
            }
            return try await client.setQueue(queue, isSuspended: isSuspended)
        }
        return try show([answer], as: QueueTable.lines([answer], console.format))
    }
}

enum QueueTable {
    static func lines(_ queues: [JSON], _ format: TextFormat = TextFormat()) -> [String] {
        func number(_ head: String, _ member: String, rank: Int? = nil) -> Table<JSON>.Column {
            .number(head, rank: rank) { $0.number(member) }
        }
        return Table([
            .init("QUEUE", cut: .end, least: 7) { $0.text("queue") ?? "?" }, number("LIMIT", "concurrency", rank: 2),
            number("USER", "perUser", rank: 3), number("RUNNING", "running"), number("QUEUED", "queued"),
            number("SCHEDULED", "scheduled", rank: 1),
            .init("STATE") { StyledText(state: $0["suspended"]?.bool == true ? "suspended" : "open") },
        ]).lines(queues, format)
    }
}
