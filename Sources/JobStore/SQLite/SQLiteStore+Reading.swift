import Dispatch
import GRDB
package import JobModel
import Synchronization

extension SQLiteStore {
    package func job(_ id: JobID) async throws(StoreError) -> Job? {
        try await read { try $0.job(id) }
    }

    package func jobs(numbered ids: [JobID]) async throws(StoreError) -> [Job] {
        try await read { try $0.jobs(ids) }
    }

    package func jobs(_ filter: JobFilter) async throws(StoreError) -> [Job] {
        try await read { try $0.jobs(filter) }
    }

    package func children(
        of parent: JobID, link: Int, from start: Int, limit: Int
    ) async throws(StoreError) -> [Job] {
        try await read { try $0.children(of: parent, link: link, from: start, limit: limit).jobs }
    }

    package func childStates(
        of parent: JobID, link: Int
    ) async throws(StoreError) -> [(id: JobID, state: JobState)] {
        try await read { reader in
            try reader.childStates(of: parent, link: link).map { (id: $0.id, state: $0.state) }
        }
    }

    package func ready(
        queue: String, after position: ReadyPosition?, excluding hosts: Set<String>, limit: Int
    ) async throws(StoreError) -> [Job] {
        try await read { try $0.ready(queue: queue, after: position, excluding: hosts, limit: limit) }
    }

    package func due(at time: Timestamp, limit: Int) async throws(StoreError) -> [Job] {
        try await read { try $0.due(at: time, limit: limit) }
    }

    package func overdue(at time: Timestamp, limit: Int) async throws(StoreError) -> [Job] {
        try await read { try $0.overdue(at: time, limit: limit) }
    }

    package func nextTimes() async throws(StoreError) -> (due: Timestamp?, deadline: Timestamp?) {
        try await read { try $0.nextTimes() }
    }

    package func firstEnd() async throws(StoreError) -> Timestamp? {
        try await read { try $0.firstEnd() }
    }

    package func interrupted() async throws(StoreError) -> [Job] {
        try await read { try $0.interrupted() }
    }

    package func counts() async throws(StoreError) -> [JobCount] {
        try await read { try $0.counts() }
    }

    package func queues() async throws(StoreError) -> [QueueSettings] {
        try await read { try $0.queues() }
    }

    package func note(of job: JobID, link: Int) async throws(StoreError) -> JSON? {
        try await read { try $0.note(of: job, link: link) }
    }

    package func download(to path: String) async throws(StoreError) -> JSON? {
        try await read { try $0.download(to: path) }
    }

    private func read<Value: Sendable>(
        _ body: @escaping @Sendable (Reader) throws -> Value
    ) async throws(StoreError) -> Value {
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Value, StoreError>, Never>) in
            read(body) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    /// Runs `body` on one of the reading connections, in a transaction, so that all it sees is of one moment.
    ///
    /// A task that is cancelled gets its answer all the same.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Reader) throws -> Value,
        _ done: @escaping @Sendable (Result<Value, StoreError>) -> Void
    ) {
        let (path, unreadable, reads) = (pool.path, unreadable, reads)
        // Under the lock, as the pool does not bear being closed meanwhile.
        let isOpen = isClosed.withLock { isClosed in
            if isClosed { return false }
            reads.enter()
            pool.asyncRead { connection in
                defer { reads.leave() }
                let result = Result { () throws(StoreError) in
                    do {
                        return try body(Reader(connection: try connection.get(), unreadable: unreadable))
                    } catch {
                        throw StoreError(.read, error, database: path)
                    }
                }
                done(result)
            }
            return true
        }
        // Never inside the call, whose caller may hold a lock.
        if !isOpen { DispatchQueue.global().async { done(.failure(.closed)) } }
    }
}
