import ArgumentParser
import Glibc
import JobClient
import JobModel

struct SubmitCommand: DaemonCommand {
    static let configuration = verb(
        "submit", "Submit jobs written as JSON or YAML, and print their ids.",
        example: #"deferctl submit --watch '{"source": {"type": "url", "url": "https://example.org/"}}'"#,
        """
        FILE holds one job spec, an array of specs, or one spec per line; if its name ends in .yaml or .yml, specs in \
        YAML. The ids are printed in the same order. All mistakes of a rejected spec are reported with their lines, and \
        submission continues with the next spec.

        An argument that begins with { is the spec itself.
        """)

    @Flag(help: "Follow the jobs to their end, as the verb watch does.") var watch = false
    @Flag(help: "Submit nothing; only report mistakes.") var dryRun = false
    @OptionGroup var global: GlobalOptions
    @OptionGroup var specs: SpecsArgument

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let documents = specs.documents(invocation)
        if dryRun { return try await documents.explain(invocation, shows: false) }
        let (status, jobs) = try await invocation.withDaemon { client in
            try await BulkSubmission(
                client: client,
                accept: { try invocation.show($0.json, as: String($0.id)) },
                refuse: { invocation.console.say($0) }
            ).run(documents)
        }
        guard watch, !jobs.isEmpty else { return status }
        return .worst([status, try await Watching(invocation: invocation).watch(jobs)])
    }
}

struct ExplainCommand: DaemonCommand {
    static let configuration = verb(
        "explain", "Show job specs as they would run, with all defaults; nothing is submitted.",
        example: "deferctl explain job.yaml",
        "FILE is read as by the verb submit. All mistakes of a spec are reported with their lines.")

    @OptionGroup var global: GlobalOptions
    @OptionGroup var specs: SpecsArgument

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        try await specs.documents(invocation).explain(invocation, shows: true)
    }
}

struct SpecsArgument: ParsableArguments {
    @Argument(help: .value("file", "The file, or a spec itself; - is standard input."), completion: .file())
    var specs = "-"

    func documents(_ invocation: Invocation) -> SpecDocuments {
        SpecDocuments(argument: specs, invocation, "job specs from the terminal, one per line", help: "submit")
    }
}

extension SpecDocuments {
    /// The specs in an argument; if they come from a terminal, says that it reads `what`.
    init(argument: String, _ invocation: Invocation, _ what: String, help verb: String) {
        if argument == "-", isatty(STDIN_FILENO) == 1 {
            invocation.console.say("Reading \(what), up to Ctrl-D; see deferctl help \(verb).")
        }
        self.init(argument: argument)
        self.verb = verb
    }

    /// Asks the daemon how it would run each spec, and reports the mistakes of the others.
    fileprivate func explain(_ invocation: Invocation, shows: Bool) async throws -> ExitStatus {
        var (documents, status) = (self, ExitStatus.ok)
        try await invocation.withDaemon { client in
            while let document = try await documents.next() {
                do throws(CommandFailure) {
                    let spec = try await document.passed(to: client.explain).get()
                    if shows { try invocation.show(spec, as: PrettyJSON.text(spec)) }
                } catch {
                    status = .worst([status, error.status])
                    guard error.status == .badData || error.status == .forbidden else { throw error }
                    invocation.console.say(error.message)
                }
            }
        }
        return status
    }
}

/// The submission of many jobs over one connection, several at a time so that the daemon can store them together.
struct BulkSubmission {
    /// The maximum number of submissions that wait for their answer, or for the report of an earlier one.
    static let window = 256

    private typealias Outcome = (location: String, result: Result<JobClient.Submission, CommandFailure>)

    let client: JobClient
    /// Called with each accepted job, in the order of the specs.
    let accept: (JobClient.Submission) throws -> Void
    /// Called with a sentence about each rejected spec, in the order of the specs.
    let refuse: (String) -> Void

    /// Submits all specs, and returns the worst status with the ids of the jobs.
    ///
    /// A rejected spec is skipped, but if the daemon accepts nothing more, the rest is not sent.
    func run<Documents: AsyncIteratorProtocol & Sendable>(
        _ specs: Documents
    ) async throws -> (status: ExitStatus, jobs: [Int64]) where Documents.Element == SpecDocuments.Document {
        let (outcomes, outcome) = AsyncStream.makeStream(of: Task<Outcome, Never>.self)
        let (slots, slot) = AsyncStream.makeStream(of: Void.self)
        for _ in 0..<Self.window { slot.yield() }
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [client] in
                defer { outcome.finish() }
                var (specs, slots) = (specs, slots.makeAsyncIterator())
                while await slots.next() != nil, let document = try await specs.next() {
                    // The loop below awaits these tasks, in the order of the specs.
                    outcome.yield(
                        Task {
                            let result = await document.passed { spec throws(JobClientError) in
                                try await client.submit(spec)
                            }
                            return (document.location, result)
                        })
                }
            }
            var (status, jobs, isOver) = (ExitStatus.ok, [Int64](), false)
            // Where the specs are whose jobs may or may not exist.
            var inDoubt: [String] = []
            for await task in outcomes {
                let outcome = await task.value
                switch outcome.result {
                case .success(let submission):
                    jobs.append(submission.id)
                    try accept(submission)
                case .failure(let failure):
                    status = .worst([status, failure.status])
                    // Any other failure would happen to the next spec too, and is told once.
                    let isGeneral = failure.status != .badData && failure.status != .forbidden
                    if failure.status == .unreachable {
                        inDoubt.append(outcome.location)
                    } else if !isGeneral || !isOver {
                        refuse(failure.message)
                    }
                    guard isGeneral, !exchange(&isOver, with: true) else { break }
                    slot.finish()
                    group.cancelAll()
                }
                slot.yield()
            }
            if let first = inDoubt.first, let last = inDoubt.last {
                let (place, jobs) = first == last ? (first, "the job") : ("\(first) to \(last)", "these jobs")
                refuse("\(place): \(CommandFailure.inDoubt(jobs).message)")
            }
            if !isOver { try await group.waitForAll() }
            return (status, jobs)
        }
    }
}

extension SpecDocuments.Document {
    /// What `call` makes of the spec; a failure tells where each mistake is.
    fileprivate func passed<Value>(
        to call: (JSON) async throws(JobClientError) -> Value
    ) async -> Result<Value, CommandFailure> {
        let json: JSON
        do { json = try spec.get() } catch { return .failure(located(error)) }
        do throws(JobClientError) { return .success(try await call(json)) } catch {
            let failure = CommandFailure(submitting: error)
            guard let text, !error.mistakes.isEmpty else { return .failure(located(failure)) }
            let lines = error.mistakes.flatMap(text.lines).map(\.sanitized)
            return .failure(CommandFailure(failure.status, lines.joined(separator: "\n")))
        }
    }

    private func located(_ failure: CommandFailure) -> CommandFailure {
        CommandFailure(failure.status, "\(location): \(failure.message.sanitized)")
    }
}
