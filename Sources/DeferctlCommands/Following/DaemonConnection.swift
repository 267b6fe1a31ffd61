import JobClient
import JobModel

/// A connection that survives a restart of the daemon.
///
/// Jobs survive a restart too, so a verb that only watches can ask again.
struct DaemonConnection: Sendable {
    static let patience = Duration.seconds(30)

    let path: String
    let say: @Sendable (String) async -> Void

    /// Runs `body` with `client`, and again with a new connection each time the daemon goes away.
    func keeping<Value>(_ client: JobClient, _ body: (JobClient) async throws -> Value) async throws -> Value {
        do {
            return try await body(client)
        } catch let error as JobClientError where error.isLossOfDaemon {}
        await say("The daemon went away; waiting up to 30 s for it to come back.")
        return try await reconnect().closing { client in
            await say("The daemon is back.")
            return try await keeping(client, body)
        }
    }

    /// Runs `body` with the `jobs` that exist, and reports the others.
    ///
    /// `body` removes jobs that it no longer needs. The value is nil if no job is left; `missing` has a status for each
    /// missing job.
    func keeping<Value>(
        _ client: JobClient, _ jobs: [Int64], _ body: (JobClient, inout [Int64]) async throws -> Value
    ) async throws -> (value: Value?, missing: [ExitStatus]) {
        var (present, missing) = (jobs, [ExitStatus]())
        let value = try await keeping(client) { client -> Value? in
            while !present.isEmpty {
                do {
                    return try await body(client, &present)
                } catch let error as JobClientError where error.isNotFound {
                    // The error does not say which job is missing.
                    let before = missing.count
                    for job in Set(present).sorted() {
                        do throws(JobClientError) { _ = try await client.get(job) } catch {
                            guard error.isNotFound else { throw error }
                            let failure = CommandFailure(error)
                            present.removeAll { $0 == job }
                            missing.append(failure.status)
                            await say(failure.message.sanitized)
                        }
                    }
                    // All of them exist now.
                    if missing.count == before { throw error }
                }
            }
            return nil
        }
        return (value, missing)
    }

    private func reconnect() async throws -> JobClient {
        let deadline = ContinuousClock.now + Self.patience
        var pause = Duration.milliseconds(50)
        repeat {
            try await Task.sleep(for: pause)
            do throws(JobClientError) {
                let client = try await JobClient.connect(path: path)
                // A daemon that is about to stop may still accept connections.
                do throws(JobClientError) { _ = try await client.info() } catch {
                    await client.close()
                    throw error
                }
                return client
            } catch {
                guard error.code == .unreachable || error.isLossOfDaemon else { throw error }
            }
            pause = min(pause * 2, .seconds(1))
        } while ContinuousClock.now < deadline
        throw CommandFailure(
            .unreachable,
            "The daemon at \(path) did not come back within 30 s; its jobs go on when it is started again.")
    }
}

extension JobClientError {
    /// Whether the daemon went away or is about to.
    var isLossOfDaemon: Bool { code == .closed || rpc?.kind == "shutting-down" }

    fileprivate var isNotFound: Bool { rpc?.kind == "not-found" }
}
