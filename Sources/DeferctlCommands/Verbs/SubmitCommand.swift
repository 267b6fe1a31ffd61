import ArgumentParser
import Glibc
import JobClient
import JobModel

struct SubmitCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "submit", abstract: "Submit jobs written as JSON, and print their ids.",
        discussion: """
            FILE holds one job spec, an array of specs, or one spec per line. The ids are printed in the same order. A \
            rejected spec is reported with its line number, and submission continues with the next spec.

            An argument that begins with { is the spec itself.

            Example: deferctl submit --watch '{"source": {"type": "url", "url": "https://example.org/"}}'
            """)

    @Flag(help: "Follow the jobs to their end, as the verb watch does.") var watch = false
    @OptionGroup var global: GlobalOptions

    @Argument(help: .value("file", "The file, or a spec itself; - is standard input."), completion: .file())
    var specs = "-"

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        if specs == "-", isatty(STDIN_FILENO) == 1 {
            invocation.console.say(
                "Reading job specs from the terminal, one per line, up to Ctrl-D; see deferctl help submit.")
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

/// The submission of many jobs over one connection, several at a time so that the daemon can store them together.
struct BulkSubmission {
    /// The maximum number of submissions that wait for their answer, or for the report of an earlier one.
    static let window = 256

    private typealias Outcome = Result<JobClient.Submission, CommandFailure>

    private enum Step: Sendable {
        case read(SpecDocuments, SpecDocuments.Document?)
        case answered(Int, Outcome)
    }

    let client: JobClient
    /// Called with each accepted job, in the order of the specs.
    let accept: (JobClient.Submission) throws -> Void
    /// Called with a sentence about each rejected spec, in the order of the specs.
    let refuse: (String) -> Void

    private var status = ExitStatus.ok
    private var jobs: [Int64] = []
    private var isReading = false
    /// Whether no further spec is sent: at the end, or because the daemon accepts nothing more.
    private var isOver = false
    /// The number of specs sent, and of outcomes reported.
    private var (sent, told) = (0, 0)
    private var outcomes: [Int: Outcome] = [:]
    /// The number of rejections after the one that ended the submission.
    private var unreported: Int?

    init(
        client: JobClient, accept: @escaping (JobClient.Submission) throws -> Void,
        refuse: @escaping (String) -> Void
    ) {
        (self.client, self.accept, self.refuse) = (client, accept, refuse)
    }

    /// Submits all specs, and returns the worst status with the ids of the jobs.
    ///
    /// A rejected spec is skipped, but if the daemon accepts nothing more, the rest is not sent.
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
                // The end of the group cancels a read of input that is no longer needed.
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
        if let unreported, unreported > 0 {
            refuse("\(unreported) more specs had already been sent, and were rejected for the same reason.")
        }
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
                    return .answered(number, .success(try await client.submit(spec)))
                } catch {
                    throw CommandFailure(submitting: error)
                }
            } catch {
                let sentence = "\(document.location): \(error.message.sanitized)"
                return .answered(number, .failure(CommandFailure(error.status, sentence)))
            }
        }
    }

    private mutating func tell(_ outcome: Outcome) throws {
        told += 1
        switch outcome {
        case .success(let submission):
            jobs.append(submission.id)
            try accept(submission)
        case .failure(let failure):
            status = .worst([status, failure.status])
            // Any other failure would happen to the next spec too.
            let isGeneral = failure.status != .badData && failure.status != .forbidden
            if isGeneral, let count = unreported {
                unreported = count + 1
            } else {
                refuse(failure.message)
                if isGeneral { (isOver, unreported) = (true, 0) }
            }
        }
    }
}
