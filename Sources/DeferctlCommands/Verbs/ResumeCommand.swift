import ArgumentParser

/// Resumes a queue.
struct ResumeCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Start jobs of a suspended queue again.",
        discussion: """
            Only administrators may do this.

            Example: deferctl resume default
            """)

    @OptionGroup var global: GlobalOptions

    @Argument(help: "The queue's name.", completion: LiveCompletion.queues)
    var queue: String

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await invocation.setSuspended(false, queue: queue)
    }
}
