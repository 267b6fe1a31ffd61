import ArgumentParser

/// Suspends a queue.
struct SuspendCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspend",
        abstract: "Start no more jobs of a queue.",
        discussion: """
            Jobs that run go on, and new ones are taken. Only administrators may do this.

            Example: deferctl suspend default
            """)

    @OptionGroup var global: GlobalOptions

    @Argument(help: "The queue's name.", completion: LiveCompletion.queues)
    var queue: String

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.setSuspended(true, queue: queue)
    }
}
