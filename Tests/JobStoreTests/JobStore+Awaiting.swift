import JobModel
import Testing

@testable import JobStore

/// The writing calls for tests that wait for each.
extension CallableJobStore {
    func submit(_ jobs: [Job]) async throws -> [Submission] {
        try await answer { submit(jobs, $0) }
    }

    /// Submits jobs that must be new; gives their numbers.
    func create(_ jobs: Job...) async throws -> [JobID] {
        try await submit(jobs).compactMap { if case .created(let id) = $0 { id } else { nil } }
    }

    func submit(children: [Job], of parent: Job) async throws -> [JobID] {
        try await answer { submit(children: children, of: parent, $0) }
    }

    func save(_ jobs: Job...) async throws {
        try await answer { save(jobs, $0) }
    }

    func remove(_ job: JobID) async throws -> [JobID] {
        try await answer { remove(job, $0) }.map(\.id)
    }

    func removeChildren(of parent: JobID, fromLink link: Int) async throws -> [JobID] {
        try await answer { removeChildren(of: parent, fromLink: link, $0) }.map(\.id)
    }

    func save(note: JSON?, of job: JobID, link: Int) async throws {
        try await answer { save(note: note, of: job, link: link, $0) }
    }

    func save(download: JSON, to path: String) async throws {
        try await answer { save(download: download, to: path, $0) }
    }

    func save(_ queue: QueueSettings) async throws {
        try await answer { save(queue, $0) }
    }

    func purge(finishedBefore time: Timestamp, keeping count: Int, atMost limit: Int) async throws -> [JobID] {
        try await answer { purge(finishedBefore: time, keeping: count, atMost: limit, $0) }.map(\.id)
    }

    func probe() async throws {
        try await answer { probe($0) }
    }

    private func answer<Value: Sendable>(
        _ call: (@escaping @Sendable (Result<Value, StoreError>) -> Void) -> Void
    ) async throws -> Value {
        try await withCheckedContinuation { continuation in call { continuation.resume(returning: $0) } }.get()
    }
}

extension CallableJobStore {
    /// A job that must be there.
    func existing(_ id: JobID) async throws -> Job {
        let job = try await job(id)
        return try #require(job)
    }

    /// Stores a plain job and gives it under its number.
    func stored() async throws -> Job {
        let job = try Job.example()
        return try await job.numbered(create(job)[0])
    }
}
