import ArgumentParser
import Glibc
import JobClient
import JobModel

/// Submits jobs whose specs stand in a file or in the argument itself.
struct SubmitCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "submit", abstract: "Submit jobs that are written as JSON, and print their ids.",
        discussion: """
            FILE holds one job spec, an array of them, or one spec a line. The ids are printed in that order; a \
            spec that the daemon refuses is told with its line, and those behind it are submitted all the same.

            An argument that begins with { is no file but the spec itself.

            Example: deferctl submit --watch '{"source": {"type": "url", "url": "https://example.org/"}}'
            """)

    @Flag(help: "Follow the jobs to their end, as the verb watch does.") var watch = false
    @OptionGroup var global: GlobalOptions

    @Argument(help: .value("file", "The file, or a spec itself; - is standard input."), completion: .file())
    var specs = "-"

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        if specs == "-", isatty(STDIN_FILENO) == 1 {
            invocation.console.say("Reading specs from the terminal, one a line, to Ctrl-D; see deferctl help submit.")
        }
        let (status, jobs) = try await invocation.withDaemon { client in
            var submission = BulkSubmission(
                client: client,
                accept: { try invocation.show($0.json, as: String($0.id)) },
                refuse: { invocation.console.say($0) })
            return try await submission.run(SpecDocuments(argument: specs))
        }
        guard watch, !jobs.isEmpty else { return status }
        return .worst([status, try await Watching(invocation: invocation).watch(jobs)])
    }

}

/// Submits many jobs over one connection, several at a time so that the daemon can store them together.
struct BulkSubmission {
    /// The most submissions at a time that wait for their answer, or for an earlier outcome to be reported.
    static let window = 256

    /// What one spec led to.
    private enum Outcome: Sendable {
        case accepted(JobClient.Submission)
        /// The sentence says why; the status, what that means.
        case refused(String, ExitStatus)
    }

    /// What came next: a spec, or the answer to a submission.
    private enum Step: Sendable {
        case read(SpecDocuments, SpecDocuments.Document?)
        case answered(Int, Outcome)
    }

    private let client: JobClient
    private let accept: (JobClient.Submission) throws -> Void
    private let refuse: (String) -> Void

    private var status = ExitStatus.ok
    private var jobs: [Int64] = []
    private var isReading = false
    /// Whether no further spec is to be sent, and whether that is because of a refusal.
    private var (isOver, isStopped) = (false, false)
    /// The number of specs sent, and of those whose outcome was reported; outcomes are reported in order.
    private var (sent, told) = (0, 0)
    private var outcomes: [Int: Outcome] = [:]
    /// The number of refusals after the one that ended the submission; only their number is reported.
    private var unreported = 0

    /// Submissions through `client`. `accept` is called with each accepted job and `refuse` with a sentence about each
    /// refused spec, in the order of the specs.
    init(
        client: JobClient, accept: @escaping (JobClient.Submission) throws -> Void,
        refuse: @escaping (String) -> Void
    ) {
        self.client = client
        self.accept = accept
        self.refuse = refuse
    }

    /// Submits all specs and returns the worst status with the ids of the jobs.
    ///
    /// A refused spec is reported and skipped. Where the daemon accepts nothing more, no further one is sent.
    mutating func run(_ specs: SpecDocuments) async throws -> (ExitStatus, [Int64]) {
        var specs = specs
        try await withThrowingTaskGroup(of: Step.self) { group in
            while true {
                if !isReading, !isOver, sent - told < Self.window {
                    isReading = true
                    group.addTask { [specs] in
                        var specs = specs
                        let document = try await specs.next()
                        return .read(specs, document)
                    }
                }
                // A read of input that is not needed any more ends when the group is cancelled.
                guard sent > told || !isOver, let step = try await group.next() else { break }
                switch step {
                case .read(let rest, let document):
                    isReading = false
                    specs = rest
                    if let document { send(document, in: &group) } else { isOver = true }
                case .answered(let number, let outcome):
                    outcomes[number] = outcome
                    while let outcome = outcomes.removeValue(forKey: told) { try tell(outcome) }
                }
            }
            group.cancelAll()
        }
        if unreported > 0 { refuse("\(unreported) more specs behind it were sent already and met the same.") }
        return (status, jobs)
    }

    private mutating func send(_ document: SpecDocuments.Document, in group: inout ThrowingTaskGroup<Step, any Error>) {
        guard !isOver else { return }
        let (number, client) = (sent, client)
        sent += 1
        group.addTask {
            do throws(CommandFailure) {
                let spec = try document.spec.get()
                do throws(JobClientError) {
                    return .answered(number, .accepted(try await client.submit(spec)))
                } catch {
                    throw CommandFailure(submitting: error)
                }
            } catch {
                return .answered(number, .refused("\(document.location): \(error.message.sanitized)", error.status))
            }
        }
    }

    private mutating func tell(_ outcome: Outcome) throws {
        told += 1
        switch outcome {
        case .accepted(let submission):
            jobs.append(submission.id)
            try accept(submission)
        case .refused(let sentence, let refusal):
            status = .worst([status, refusal])
            // Any other refusal would meet the next spec, too.
            let isGeneral = refusal != .badData && refusal != .forbidden
            if isGeneral, isStopped {
                unreported += 1
            } else {
                refuse(sentence)
            }
            if isGeneral { (isOver, isStopped) = (true, true) }
        }
    }
}
