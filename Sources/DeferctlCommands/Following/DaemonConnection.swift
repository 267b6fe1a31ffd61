import JobClient
import JobModel

/// The connection of a verb that outlives a restart of the daemon.
///
/// Jobs survive a restart, so a verb that only watches can simply ask again.
struct DaemonConnection: Sendable {
    /// How long to wait for a daemon that went away.
    static let patience = Duration.seconds(30)

    let path: String
    /// Tells the user what is going on.
    let say: @Sendable (String) async -> Void

    /// Runs `body` with `client`, and again with a new connection each time the daemon goes away meanwhile.
    ///
    /// The connections made here are closed here.
    func keeping<Value>(_ client: JobClient, _ body: (JobClient) async throws -> Value) async throws -> Value {
        var client = client
        var isOwn = false
        while true {
            do {
                let value = try await body(client)
                if isOwn { await client.close() }
                return value
            } catch let error as JobClientError where error.isLossOfDaemon {
                if isOwn { await client.close() }
                await say("The daemon went away; waiting up to 30 s for it to come back.")
                client = try await reconnect()
                isOwn = true
                await say("The daemon is back.")
            } catch {
                if isOwn { await client.close() }
                throw error
            }
        }
    }

    /// Runs `body` with those of `jobs` that are there, and from which it may drop some, and says which are not. Gives nil
    /// where none is left, and the status for each that is not there.
    func keeping<Value>(
        _ client: JobClient, _ jobs: [Int64], _ body: (JobClient, inout [Int64]) async throws -> Value
    ) async throws -> (value: Value?, missing: [ExitStatus]) {
        var (present, missing) = (jobs, [ExitStatus]())
        let value = try await keeping(client) { client -> Value? in
            while !present.isEmpty {
                do {
                    return try await body(client, &present)
                } catch let error as JobClientError where error.isNotFound {
                    // It does not say of which.
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
                    // All are there now, so the refusal is all that is known.
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
        while true {
            try await Task.sleep(for: pause)
            if let client = try await connectIfThere() { return client }
            guard ContinuousClock.now < deadline else {
                throw CommandFailure(
                    .unreachable,
                    "The daemon at \(path) did not come back within 30 s; its jobs go on once it is started again.")
            }
            pause = min(pause * 2, .seconds(1))
        }
    }

    /// A connection to a daemon that answers, or nil.
    private func connectIfThere() async throws(JobClientError) -> JobClient? {
        let client: JobClient
        do {
            client = try await JobClient.connect(path: path)
        } catch {
            guard error.code == .unreachable else { throw error }
            return nil
        }
        do {
            // A daemon that is about to stop may still accept a connection.
            _ = try await client.info()
            return client
        } catch {
            await client.close()
            guard error.isLossOfDaemon else { throw error }
            return nil
        }
    }
}

extension JobClientError {
    /// Whether the daemon went away or is going to.
    var isLossOfDaemon: Bool { code == .closed || rpc?.kind == "shutting-down" }

    /// Whether there is no such job.
    fileprivate var isNotFound: Bool { rpc?.kind == "not-found" }
}
