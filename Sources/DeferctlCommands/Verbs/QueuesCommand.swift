import ArgumentParser
import JobClient
import JobModel

/// Lists the queues.
struct QueuesCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "queues",
        abstract: "List the queues.",
        discussion: """
            LIMIT is how many jobs of the queue run at a time, USER how many of those may be one user's.

            Example: deferctl queues
            """)

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let queues = try await invocation.withDaemon { try await $0.queues() }
        if invocation.writesJSON {
            for queue in queues { try invocation.console.line(queue) }
        } else {
            let console = invocation.console
            try console.lines(
                QueueTable.lines(queues, width: console.width, mark: console.cutMark, palette: console.palette))
        }
        return .ok
    }
}
