import ArgumentParser
import Glibc
import JobClient
import JobModel

struct SubmitCommand: DaemonCommand {
    static let configuration = verb(
        "submit", "Submit jobs written as JSON, and print their ids.",
        example: #"deferctl submit --watch '{"source": {"type": "url", "url": "https://example.org/"}}'"#,
        """
        FILE holds one job spec, an array of specs, or one spec per line. The ids are printed in the same order. A \
        rejected spec is reported with its line number, and submission continues with the next spec.

        An argument that begins with { is the spec itself.
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
            try await BulkSubmission(
                client: client,
                accept: { try invocation.show($0.json, as: String($0.id)) },
                refuse: { invocation.console.say($0) }
            ).run(SpecDocuments(argument: specs))
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

    let client: JobClient
    /// Called with each accepted job, in the order of the specs.
    let accept: (JobClient.Submission) throws -> Void
    /// Called with a sentence about each rejected spec, in the order of the specs.
    let refuse: (String) -> Void

    /// Submits all specs, and returns the worst status with the ids of the jobs.
    ///
    /// A rejected spec is skipped, but if the daemon accepts nothing more, the rest is not sent.
    func run(_ specs: SpecDocuments) async throws -> (status: ExitStatus, jobs: [Int64]) {
        let (outcomes, outcome) = AsyncStream.makeStream(of: Task<Outcome, Never>.self)
        let (slots, slot) = AsyncStream.makeStream(of: Void.self)
        for _ in 0..<Self.window { slot.yield() }
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [client] in
                defer { outcome.finish() }
                var (specs, slots) = (specs, slots.makeAsyncIterator())
                while await slots.next() != nil, let document = try await specs.next() {
                    // The loop below awaits these tasks, in the order of the specs.
                    outcome.yield(Task { await Self.submit(document, to: client) })
                }
            }
            var (status, jobs) = (ExitStatus.ok, [Int64]())
            // The number of rejections after the one that ended the submission.
            var unreported: Int?
            for await task in outcomes {
                switch await task.value {
                case .success(let submission):
                    jobs.append(submission.id)
                    try accept(submission)
                case .failure(let failure):
                    status = .worst([status, failure.status])
                    // Any other failure would happen to the next spec too.
                    let isGeneral = failure.status != .badData && failure.status != .forbidden
                    if isGeneral, let count = unreported {
                        unreported = count + 1
                        continue
                    }
                    refuse(failure.message)
                    if isGeneral {
                        unreported = 0
                        slot.finish()
                        group.cancelAll()
                    }
                }
                slot.yield()
            }
            if let unreported {
                if unreported > 0 {
                    refuse("\(unreported) more specs had already been sent, and were rejected for the same reason.")
                }
            } else {
                try await group.waitForAll()
            }
            return (status, jobs)
        }
    }

    private static func submit(_ document: SpecDocuments.Document, to client: JobClient) async -> Outcome {
        do throws(CommandFailure) {
            let spec = try document.spec.get()
            do throws(JobClientError) { return .success(try await client.submit(spec)) } catch {
                throw CommandFailure(submitting: error)
            }
        } catch {
            return .failure(CommandFailure(error.status, "\(document.location): \(error.message.sanitized)"))
        }
    }
}
