import JobClient
import JobModel

extension Invocation {
    /// Submits the job that `spec` describes and follows it to its end. `write` writes the result of a job that succeeded.
    ///
    /// If the daemon has no program of the name in `spec`, `other` is submitted instead; without `other`, the caller's PATH
    /// has no such program either. With `streams`, what the job's programs write is written as they write it.
    func submit(
        _ spec: JSON, orElse other: JSON? = nil, _ options: SpecOptions, streams: Bool = false,
        _ write: @Sendable @escaping (JobSnapshot) async throws -> Void
    ) async throws -> ExitStatus {
        let interruption = Interruption(
            farewell: "Interrupted before the daemon answered; see whether it has the job with: deferctl list")
        return try await interruption.run {
            try await withDaemon { client in
                let submission = try await submit(spec, orElse: other, to: client)
                if options.detach { return try show(submission.json, as: String(submission.id)) }
                if !submission.isCreated {
                    console.say("Job \(submission.id) already has this key; following it.")
                }
                let verb = streams ? "output -f" : "watch"
                interruption.set(
                    farewell: "Detached; job \(submission.id) goes on. Come back with: deferctl \(verb) \(submission.id)")
                guard streams, !writesJSON else {
                    return try await follow(submission.id, with: client, options, write)
                }
                interruption.set(hint: "Press Ctrl-C again within a second to cancel job \(submission.id).") {
                    // If the daemon is gone, the job is as it was.
                    _ = try? await client.cancel(submission.id)
                }
                return try await followOutput(of: submission.id, with: client, options)
            }
        }
    }

    private func submit(
        _ spec: JSON, orElse other: JSON?, to client: JobClient
    ) async throws(CommandFailure) -> JobClient.Submission {
        do {
            return try await client.submit(spec)
        } catch {
            guard await isUnknownProgram(error, spec, client) else { throw CommandFailure(submitting: error) }
            guard let other else {
                let name = spec["source"]?["program"]?.string ?? ""
                throw CommandFailure(
                    .badData,
                    "There is no program \"\(name.cut(to: 60, mark: "..."))\", neither in your PATH nor in the daemon's "
                        + "configuration; check its name.")
            }
            do {
                return try await client.submit(other)
            } catch let second {
                // A user who may not run commands has misspelt a name.
                throw CommandFailure(submitting: second.rpc?.kind == "forbidden" ? error : second)
            }
        }
    }

    /// Whether `error` says that the daemon has no program of the name in `spec`.
    ///
    /// The daemon checks the arguments first, and a command may have more of them than a configured program.
    private func isUnknownProgram(_ error: JobClientError, _ spec: JSON, _ client: JobClient) async -> Bool {
        switch error.rpc?.data["pointer"]?.string {
        case "/source/program": return true
        case let pointer? where pointer.hasPrefix("/source/arguments"):
            guard var short = spec.object, var source = spec["source"]?.object else { return false }
            source["arguments"] = nil
            short["source"] = .object(source)
            do {
                _ = try await client.explain(.object(short))
                return false
            } catch let error {
                return error.rpc?.data["pointer"]?.string == "/source/program"
            }
        default: return false
        }
    }

    /// Follows a job to its end, and writes what its programs write to the streams that they wrote it to.
    private func followOutput(
        of id: Int64, with client: JobClient, _ options: SpecOptions
    ) async throws -> ExitStatus {
        let output = OutputFollower(of: id) { [console] dropped in
            console.say(
                "\(dropped) bytes of output are missing here, as the daemon kept only the beginning and the end.")
        } write: { [console] record in
            try (record.isError ? console.messages : console.data).write(record.bytes)
        }
        let display = BarDisplay(job: id, isUnicode: console.messageFormat.isUnicode)
        let ending = try await JobFollower.showing(display, of: self, interval: 0.05, before: output) {
            try await $0.follow([id], with: client)
        }
        guard let last = ending.finished.first else { return .worst(ending.missing) }
        let status = ExitStatus(programOf: last)
        // The program itself has told of its failure.
        if status == nil || last.error?["program"]?["exit"] == nil { _ = report(last, showsOutput: false) }
        return status ?? ExitStatus(jobState: last.state)
    }

    private func follow(
        _ id: Int64, with client: JobClient, _ options: SpecOptions, _ write: (JobSnapshot) async throws -> Void
    ) async throws -> ExitStatus {
        let ending =
            if options.quiet {
                try await JobFollower(connection: connection) { _, _ in }.follow([id], with: client)
            } else {
                try await JobFollower.showing(
                    BarDisplay(job: id, isUnicode: console.messageFormat.isUnicode), of: self
                ) { try await $0.follow([id], with: client) }
            }
        guard let last = ending.finished.first else { return .worst(ending.missing) }
        let job = try await client.completed(last)
        if writesJSON { try console.line(job.json) }
        if job.isSucceeded { try await write(job) }
        let status = report(job)
        return status == .jobFailed ? ExitStatus(programOf: job) ?? status : status
    }
}
