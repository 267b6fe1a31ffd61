import JobClient
import JobModel

/// Submits one job and follows it to its end.
struct Submitting: Sendable {
    let invocation: Invocation
    let options: FollowOptions

    /// Submits the job that `spec` describes, or `other` where the daemon has no program of the name that `spec` gives; without
    /// `other` the caller's PATH has none either. `write` is called with a job that succeeded, and writes its result.
    func run(
        _ spec: JSON, orElse other: JSON? = nil, _ write: @Sendable @escaping (JobSnapshot) async throws -> Void
    ) async throws -> ExitStatus {
        let interruption = Interruption(
            farewell: "Interrupted before the daemon answered; see with deferctl list whether it took the job.")
        return try await interruption.run {
            try await invocation.withDaemon { client in
                let submission = try await submit(spec, orElse: other, to: client)
                if options.detach {
                    try invocation.show(submission.json, as: String(submission.id))
                    return .ok
                }
                if !submission.isCreated {
                    invocation.console.say("Job \(submission.id) has this key already; following it.")
                }
                interruption.set(
                    farewell: "Detached; job \(submission.id) goes on. Come back with: deferctl watch \(submission.id)")
                return try await follow(submission.id, with: client, write)
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
                    "There is no program \"\(name.cut(to: 60, mark: "..."))\", neither in your PATH nor by that name in the "
                        + "daemon's configuration; check its name.")
            }
            do {
                return try await client.submit(other)
            } catch let second {
                // Who may not give commands has misspelt a name.
                throw CommandFailure(submitting: second.rpc?.kind == "forbidden" ? error : second)
            }
        }
    }

    /// Whether `error` says that the daemon has no program of the name that `spec` gives. What is wrong with the arguments,
    /// of which a command may have more, is said first.
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
        _ id: Int64, with client: JobClient, _ write: (JobSnapshot) async throws -> Void
    ) async throws -> ExitStatus {
        let console = invocation.console
        let display: any ProgressDisplay =
            if options.quiet {
                NoDisplay()
            } else if console.showsMessages {
                BarDisplay(job: id, isUnicode: console.messageFormat.isUnicode)
            } else {
                StepLines()
            }
        let ending = try await JobFollower.showing(display, of: invocation) { try await $0.follow([id], with: client) }
        guard let last = ending.finished.first else { return .worst(ending.missing) }
        let job = try await client.completed(last)
        if invocation.writesJSON { try console.line(job.json) }
        if job.isSucceeded { try await write(job) }
        return invocation.report(job)
    }
}
