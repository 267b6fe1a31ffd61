import ArgumentParser
import JobClient
import JobModel

/// Lists the queues.
struct QueuesCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "queues",
        abstract: "List the queues.",
        discussion: """
            LIMIT is how many jobs of the queue run at a time.

            Example: deferctl queues
            """)

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let queues = try await invocation.withDaemon { try await $0.queues() }
        if invocation.writesJSON {
            for queue in queues { try invocation.console.line(queue) }
        } else {
            let lines = QueueTable.lines(queues)
            try invocation.console.data.write(lines.map { $0 + "\n" }.joined())
        }
        return .ok
    }
}
