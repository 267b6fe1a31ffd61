import JobModel
import Testing

@testable import JobStore

/// The store's commands for tests that wait for each.
extension JobStore {
    /// Does not wait, for tests of what comes together.
    func submit(_ jobs: [Job], _ done: @escaping @Sendable (Result<[Submission], StoreError>) -> Void) {
        write(.submit(jobs)) { result in
            done(result.map { if case .submitted(let submissions) = $0 { submissions } else { [] } })
        }
    }

    func submit(_ jobs: [Job]) async throws -> [Submission] {
        guard case .submitted(let submissions) = try await write(.submit(jobs)) else { throw WrongAnswer() }
        return submissions
    }

    /// Submits jobs that must be new; gives their ids.
    func create(_ jobs: Job...) async throws -> [JobID] {
        try await submit(jobs).compactMap { if case .created(let id) = $0 { id } else { nil } }
    }

    /// Stores children of the link that `children` name, each with a spec of its own.
    func submit(children: [Job], of parent: Job) async throws -> [JobID] {
        let link = parent.link
        let new = NewChildren(
            parent: parent.at(link: children.first?.parent?.link ?? link), template: nil,
            children: children.map(NewChild.init))
        guard case .numbered(let ids) = try await write(.children(new)) else { throw WrongAnswer() }
        if new.parent.link != link { try await save(new.parent.at(link: link)) }
        return ids
    }

    func save(_ jobs: Job...) async throws {
        _ = try await write(.save(jobs))
    }

    func remove(_ job: JobID) async throws -> [JobID] {
        try await removing(.remove(job)).map(\.id)
    }

    func removeChildren(of parent: JobID, fromLink link: Int) async throws -> [JobID] {
        try await removing(.removeChildren(of: parent, fromLink: link)).map(\.id)
    }

    func purge(finishedBefore time: Timestamp, keeping count: Int, atMost limit: Int) async throws -> [JobID] {
        try await removing(.purge(finishedBefore: time, keeping: count, atMost: limit)).map(\.id)
    }

    func removing(_ write: StoreWrite) async throws -> [RemovedJob] {
        guard case .removed(let jobs) = try await self.write(write) else { throw WrongAnswer() }
        return jobs
    }

    func save(checkpoint: JSON?, of job: JobID, link: Int) async throws {
        try await answer { save(checkpoint: checkpoint, of: job, link: link, $0) }
    }

    func save(download: JSON, to path: String) async throws {
        try await answer { save(download: download, to: path, $0) }
    }

    func save(_ queue: QueueSettings) async throws {
        _ = try await write(.queue(queue))
    }

    func probe() async throws {
        _ = try await write(.probe)
    }

    func write(_ write: StoreWrite) async throws -> StoreWritten {
        try await answer { self.write(write, $0) }
    }

    fileprivate func answer<Value: Sendable>(
        _ call: (@escaping @Sendable (Result<Value, StoreError>) -> Void) -> Void
    ) async throws -> Value {
        try await withCheckedContinuation { continuation in call { continuation.resume(returning: $0) } }.get()
    }
}

/// Its questions likewise.
extension JobStore {
    func read(_ read: StoreRead) async throws -> StoreRows {
        try await answer { self.read(read, $0) }
    }

    func jobs(_ read: StoreRead) async throws -> [Job] {
        guard case .jobs(let jobs) = try await self.read(read) else { throw WrongAnswer() }
        return jobs
    }

    func job(_ id: JobID) async throws -> Job? { try await jobs(.jobs([id])).first }

    /// A job that must be there.
    func existing(_ id: JobID) async throws -> Job {
        let job = try await job(id)
        return try #require(job)
    }

    func jobs(_ filter: JobFilter) async throws -> [Job] { try await jobs(.list(filter)) }

    /// The jobs of one owner that are ready.
    func ready(
        queue: String = "default", owner: UInt32 = 1000, after position: ReadyPosition? = nil,
        excluding hosts: Set<String> = [], limit: Int
    ) async throws -> [ReadyPosition] {
        let read = StoreRead.ready(queue: queue, owner: owner, after: position, excluding: hosts, limit: limit)
        guard case .ready(let jobs) = try await self.read(read) else { throw WrongAnswer() }
        return jobs.map(\.position)
    }

    func times() async throws -> StoredTimes {
        guard case .times(let times) = try await read(.times) else { throw WrongAnswer() }
        return times
    }

    func recovery() async throws -> StoredState {
        guard case .recovery(let state) = try await read(.recovery) else { throw WrongAnswer() }
        return state
    }

    func counts() async throws -> [JobCount] { try await recovery().counts }

    func childStates(of parent: JobID, link: Int) async throws -> [ChildState] {
        guard case .childStates(let states) = try await read(.childStates(of: parent, link: link)) else {
            throw WrongAnswer()
        }
        return states
    }

    /// Stores a plain job and gives it under its id.
    func stored() async throws -> Job {
        let job = try Job.example()
        return try await job.numbered(create(job)[0])
    }
}

extension Job {
    /// The job as it would be at another link.
    fileprivate func at(link: Int) -> Job {
        var job = self
        job.link = link
        return job
    }
}

extension NewChild {
    /// A child that begins as `job` stands.
    fileprivate init(_ job: Job) {
        let body = Body.spec(job.spec.json)
        self.init(
            index: job.parent?.index ?? 0, body: body, queue: job.spec.queue, priority: job.spec.priority,
            source: job.spec.source.type, state: job.state, createdAt: job.createdAt, notBefore: job.notBefore,
            deadlineAt: job.deadlineAt, host: job.host, tags: job.spec.tags, isGated: job.isGated,
            size: body.storedSize(queue: job.spec.queue, priority: job.spec.priority))
    }
}
