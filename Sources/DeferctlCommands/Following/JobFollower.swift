import JobClient
import JobModel

struct JobFollower: Sendable {
    let connection: DaemonConnection
    /// The pause between two progress events of a job, in seconds.
    var interval: Double?
    var showsChildren = false
    /// Returns jobs that ended before a watch began, which the watch does not report, so that they are shown too. It is called
    /// after the watch has begun, so that no end is missed.
    var endedBefore: @Sendable (JobClient) async throws -> [JobSnapshot] = { _ in [] }
    let show: @Sendable (JobEvent, JobClient) async throws -> Void

    /// The maximum number of jobs in a watch.
    private static let mostWatched = 10_000

    /// Follows these jobs to their end, and returns them in the same order. Missing jobs are reported, with a status for each.
    func follow(
        _ jobs: [Int64], with client: JobClient
    ) async throws -> (finished: [JobSnapshot], missing: [ExitStatus]) {
        var (finished, missing) = ([Int64: JobSnapshot](), [ExitStatus]())
        var unfinished: Set<Int64> = []
        for start in stride(from: 0, to: jobs.count, by: Self.mostWatched) {
            let part = Array(jobs[start...].prefix(Self.mostWatched))
            missing += try await connection.keeping(client, part) { client, open in
                defer { open.removeAll { finished[$0] != nil } }
                var rest = Set(open)
                try await watch(.jobs(rest.sorted()), with: client, &unfinished) { event in
                    if case .state(let job) = event.change, job.isFinished, rest.remove(job.id) != nil {
                        finished[job.id] = job
                    }
                    return !rest.isEmpty
                }
            }.missing
        }
        return (jobs.compactMap { finished[$0] }, missing)
    }

    /// Follows what `selection` covers until the task is cancelled.
    func follow(_ selection: JobClient.WatchSelection, with client: JobClient) async throws {
        var unfinished: Set<Int64> = []
        try await connection.keeping(client) { client in
            try await watch(selection, with: client, &unfinished) { _ in true }
        }
    }

    /// Shows events while `goesOn` is true. `unfinished` are the jobs whose end was not shown yet, by this or an earlier watch.
    private func watch(
        _ selection: JobClient.WatchSelection, with client: JobClient, _ unfinished: inout Set<Int64>,
        _ goesOn: (JobEvent) -> Bool
    ) async throws {
        let watch = try await client.watch(selection, interval: interval, children: showsChildren)
        var jobs = try await endedBefore(client) + watch.jobs
        // The watch does not cover jobs that ended while the daemon was away.
        for job in unfinished.subtracting(jobs.map(\.id)).sorted() {
            do throws(JobClientError) { jobs.append(try await client.get(job)) } catch {
                guard error.isNotFound else { throw error }
                unfinished.remove(job)
            }
        }
        func goesOnAfter(_ event: JobEvent) async throws -> Bool {
            // If the daemon goes away meanwhile, the event is shown again later.
            try await show(event, client)
            if case .state(let job) = event.change {
                if job.isFinished { unfinished.remove(job.id) } else { unfinished.insert(job.id) }
            }
            return goesOn(event)
        }
        var isGoingOn = true
        for job in jobs { isGoingOn = try await goesOnAfter(JobEvent(watch: watch.id, job)) }
        guard isGoingOn else { return }
        for try await event in client.notifications where event.watch == watch.id {
            if try await !goesOnAfter(event) { return }
        }
        throw CancellationError()
    }
}

/// A connection that survives a restart of the daemon.
///
/// Jobs survive a restart too, so a verb that only watches can ask again.
struct DaemonConnection: Sendable {
    static let patience = Duration.seconds(30)

    let path: String
    /// When the user's own patience ends; nil if only ``patience`` counts.
    var deadline: ContinuousClock.Instant?
    let say: @Sendable (String) async -> Void

    /// Runs `body` with `client`, and again with a new connection each time the daemon goes away.
    func keeping<Value>(_ client: JobClient, _ body: (JobClient) async throws -> Value) async throws -> Value {
        do {
            return try await body(client)
        } catch let error as JobClientError where error.isLossOfDaemon {}
        await say("The daemon went away; waiting for it to come back.")
        return try await reconnectInTime().closing { client in
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
                        // Whether it exists: unlike this call, `get` would read a long result too.
                        do throws(JobClientError) { _ = try await client.call("job.get", ["job": job.json]) } catch {
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

    private func reconnectInTime() async throws -> JobClient {
        guard let deadline else { return try await reconnect() }
        return try await withThrowingTaskGroup(of: JobClient.self) { group in
            group.addTask { try await reconnect() }
            group.addTask {
                try await Task.sleep(until: deadline, clock: .continuous)
                throw CommandFailure(
                    .tryAgain,
                    "The daemon at \(path) did not come back in time; its jobs go on when it is started again.")
            }
            defer { group.cancelAll() }
            guard let client = try await group.next() else { throw CancellationError() }
            return client
        }
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

    var isNotFound: Bool { rpc?.kind == "not-found" }
}
