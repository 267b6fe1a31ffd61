import JobClient
import JobModel

extension Invocation {
    /// Submits the job that `spec` describes and follows it to its end. `write` writes the result of a job that succeeded.
    ///
    /// If the daemon has no program of the name in `spec`, `other` is submitted instead; without `other`, the caller's PATH
    /// has no such program either.
    func submit(
        _ spec: JSON, orElse other: JSON? = nil, _ options: SpecOptions,
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
                interruption.set(
                    farewell: "Detached; job \(submission.id) goes on. Come back with: deferctl watch \(submission.id)")
                return try await follow(submission.id, with: client, options, write)
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

    private func follow(
        _ id: Int64, with client: JobClient, _ options: SpecOptions, _ write: (JobSnapshot) async throws -> Void
    ) async throws -> ExitStatus {
        let ending =
            if options.quiet {
                try await JobFollower(connection: connection) { _ in }.follow([id], with: client)
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
