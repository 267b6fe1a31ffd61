import JobClient
import JobModel

extension Invocation {
    /// Makes a spec, which can depend on whose daemon it is for.
    typealias SpecMaker = @Sendable (JobClient) async throws(CommandFailure) -> JSON

    /// Submits a job and follows it to its end. `write` writes the result of a job that succeeded; without it, what programs
    /// write is written as it comes.
    ///
    /// The spec that `making` makes is submitted if the daemon has no program of the name in `program`, or if that is nil.
    func submit(
        _ options: SpecOptions, program: JSON? = nil, making spec: @escaping SpecMaker,
        _ write: (@Sendable (JobSnapshot) async throws -> Void)? = nil
    ) async throws -> ExitStatus {
        let interruption = Interruption(
            farewell: "Interrupted before the daemon answered; see whether it has the job with: \(socket.command) list")
        return try await interruption.run {
            try await withDaemon { client in
                let submission = try await submit(program, orElse: spec, to: client)
                if options.detach { return try show(submission.json, as: String(submission.id)) }
                if !submission.isCreated { console.say("Job \(submission.id) already has this key; following it.") }
                let verb = write == nil ? "output -f" : "watch"
                interruption.set(
                    farewell: "Detached; job \(submission.id) goes on. Come back with: "
                        + "\(socket.command) \(verb) \(submission.id)")
                if !writesJSON, write == nil {
                    interruption.set(hint: "Press Ctrl-C again within a second to cancel job \(submission.id).") {
                        // If the daemon is gone, the job is as it was.
                        _ = try? await withDaemon { try await $0.change(submission.id, .cancel) }
                    }
                }
                return try await follow(submission.id, with: client, options, write)
            }
        }
    }

    private func submit(
        _ spec: JSON?, orElse other: SpecMaker, to client: JobClient
    ) async throws(CommandFailure) -> JobClient.Submission {
        try await client.send(spec, orElse: other, failing: CommandFailure.init(submitting:)) {
            spec throws(JobClientError) in try await client.submit(spec)
        }
    }

    /// Follows a job to its end. Without `write`, what its programs write goes to the streams that they wrote it to.
    private func follow(
        _ id: Int64, with client: JobClient, _ options: SpecOptions,
        _ write: (@Sendable (JobSnapshot) async throws -> Void)?
    ) async throws -> ExitStatus {
        let output =
            write != nil || writesJSON
            ? nil
            : OutputFollower(of: id, attempt: 1, on: console) { [console] records in
                for record in records { try (record.isError ? console.messages : console.data).write(record.bytes) }
            }
        let display = JobsDisplay(
            format: console.messageFormat, isLog: !console.showsMessages && output == nil, job: id,
            isSilent: options.quiet)
        let watching = Watching(invocation: self, interval: output == nil ? nil : 0.05, output: output)
        let ending = try await watching.showing(display) { try await $0.follow([id], with: client) }
        guard let last = ending.finished.first else { return .worst(ending.missing) }
        if let output {
            let status = ExitStatus(programOf: last)
            // The program itself has told of its failure.
            if status == nil || last.error?["program"]?["exit"] == nil { _ = report(last, showsOutput: false) }
            if last.isSucceeded, await output.dropped > 0 { return .output }
            return status ?? ExitStatus(jobState: last.state)
        }
        // The daemon may have closed the connection that the job was submitted on.
        let isWhole = last.result != nil || last.resultSize == nil
        let job = isWhole ? last : try await withDaemon { try await $0.completed(last) }
        if writesJSON { try console.line(job.json) }
        if job.isSucceeded { try await write?(job) }
        let status = report(job)
        return status == .jobFailed ? ExitStatus(programOf: job) ?? status : status
    }
}

extension JobClient {
    /// Calls `send` with a spec that names a program, and if the daemon has none of that name, or if `spec` is nil, with the
    /// one that `other` makes.
    func send<Answer>(
        _ spec: JSON?, orElse other: Invocation.SpecMaker, failing failure: (JobClientError) -> CommandFailure,
        _ send: (JSON) async throws(JobClientError) -> Answer
    ) async throws(CommandFailure) -> Answer {
        var unknown: JobClientError?
        if let spec {
            do { return try await send(spec) } catch {
                guard error.mistakes.contains(where: { $0.pointer.tokens.suffix(2) == ["source", "program"] }) else {
                    throw failure(error)
                }
                unknown = error
            }
        }
        let command = try await other(self)
        do { return try await send(command) } catch {
            // A user who may not run commands has misspelt a name.
            throw failure(error.rpc?.kind == "forbidden" ? unknown ?? error : error)
        }
    }
}

extension JSON {
    /// The source that a verb made: in the last link of a job that waits for others.
    var ownSource: JSON? {
        let link = self["then"]?.array?.last
        return (link?["then"] ?? link?["both"] ?? self)["source"]
    }
}
