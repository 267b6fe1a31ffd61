import JobClient
import JobModel

/// Watches jobs to their end.
struct JobFollower: Sendable {
    let connection: DaemonConnection
    /// The pause between two reports of a job's progress, in seconds.
    var interval: Double?
    /// Whether the children of lists are shown too.
    var showsChildren = false
    /// Called with every event.
    let show: @Sendable (JobEvent) async throws -> Void

    /// What became of jobs that were followed to their end.
    struct Ending: Sendable {
        /// The jobs as they ended, in the order asked.
        var finished: [JobSnapshot] = []
        /// The status for each job that is not there.
        var missing: [ExitStatus] = []
    }

    /// Follows these jobs. Where one is not there, that is said, and the others are followed all the same.
    func follow(_ jobs: [Int64], with client: JobClient) async throws -> Ending {
        var finished: [Int64: JobSnapshot] = [:]
        var open = Set(jobs)
        var ending = Ending()
        return try await connection.keeping(client) { client in
            while !open.isEmpty {
                do {
                    try await watch(.jobs(open.sorted()), with: client) { event in
                        if case .state(let snapshot) = event.change, snapshot.isFinished,
                            open.remove(snapshot.id) != nil
                        {
                            finished[snapshot.id] = snapshot
                        }
                        return !open.isEmpty
                    }
                } catch let error as JobClientError where error.rpc?.kind == "not-found" {
                    for failure in try await client.missing(among: open, after: error) {
                        open.remove(failure.job)
                        await connection.say(failure.message)
                        ending.missing.append(failure.status)
                    }
                }
            }
            ending.finished = jobs.compactMap { finished[$0] }
            return ending
        }
    }

    /// Follows what `selection` covers until the task is cancelled.
    func follow(_ selection: JobClient.WatchSelection, with client: JobClient) async throws {
        try await connection.keeping(client) { client in
            try await watch(selection, with: client) { _ in true }
        }
    }

    /// Shows events as long as `goesOn` is true.
    private func watch(
        _ selection: JobClient.WatchSelection, with client: JobClient, _ goesOn: (JobEvent) -> Bool
    ) async throws {
        let watch = try await client.watch(selection, interval: interval, children: showsChildren)
        var isGoingOn = true
        for job in watch.jobs {
            let event = JobEvent(watch: watch.id, initial: job)
            isGoingOn = goesOn(event)
            try await show(event)
        }
        guard isGoingOn else { return }
        for try await event in client.notifications where event.watch == watch.id {
            let isGoingOn = goesOn(event)
            try await show(event)
            if !isGoingOn { return }
        }
        throw CancellationError()
    }
}

/// A job that is not there, and what that means.
struct MissingJob: Sendable {
    let job: Int64
    let status: ExitStatus
    /// Ready to be shown.
    let message: String
}

extension JobClient {
    /// Which of these jobs there are not, lowest id first, after `refusal` said that of one of several but not of which.
    ///
    /// Where all are there now, the refusal is all that is known, and thrown.
    func missing(among jobs: Set<Int64>, after refusal: JobClientError) async throws(JobClientError) -> [MissingJob] {
        var missing: [MissingJob] = []
        for job in jobs.sorted() {
            do throws(JobClientError) {
                _ = try await get(job)
            } catch {
                guard error.rpc?.kind == "not-found" else { throw error }
                let failure = CommandFailure(error)
                missing.append(MissingJob(job: job, status: failure.status, message: failure.message.sanitized))
            }
        }
        guard !missing.isEmpty else { throw refusal }
        return missing
    }
}
