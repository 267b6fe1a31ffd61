import Dispatch
import GRDB
package import JobModel
import Synchronization

extension SQLiteStore {
    package func checkpoint(of job: JobID, link: Int) async throws(StoreError) -> JSON? {
        try await read { try $0.checkpoint(of: job, link: link) }
    }

    package func unfinishedTransfers(
        of job: JobID?, atMost limit: Int
    ) async throws(StoreError) -> [UnfinishedTransfer] {
        try await read { try $0.unfinishedTransfers(of: job, atMost: limit) }
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
    /// A cancelled task gets its answer nevertheless.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Reader) throws -> Value,
        _ done: @escaping @Sendable (Result<Value, StoreError>) -> Void
    ) {
        let (path, unreadable, reads) = (pool.path, unreadable, reads)
        // Under the lock, as the pool must not be closed meanwhile.
        let isOpen = isClosed.withLock { isClosed in
            if isClosed { return false }
            reads.enter()
            pool.asyncRead { connection in
                defer { reads.leave() }
                let result = Result { () throws(StoreError) in
                    do {
                        return try body(Reader(connection: try connection.get(), unreadable: unreadable))
                    } catch {
                        let error = StoreError(.read, error, database: path)
                        if error.code == .damaged { unreadable.tell(ofDamage: error) }
                        throw error
                    }
                }
                done(result)
            }
            return true
        }
        // Never inside the call, as the caller may have a lock.
        if !isOpen { DispatchQueue.global().async { done(.failure(.closed)) } }
    }
}
