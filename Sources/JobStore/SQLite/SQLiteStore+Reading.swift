import Dispatch
import GRDB
package import JobModel
import Synchronization

extension SQLiteStore {
    package func checkpoint(of job: JobID, link: Int) async throws(StoreError) -> JSON? {
        try await read { try $0.checkpoint(of: job, link: link) }
    }

    package func checkpoints(of job: JobID, links: ClosedRange<Int>) async throws(StoreError) -> [Int: JSON] {
        try await read { try $0.checkpoints(of: job, links: links) }
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

    /// Whose turn the engine's own reads have: no user's.
    private static let own = UInt32.max

    /// Runs `body` on one of the reading connections, in a transaction, so that all it sees is of one moment. Users have them in
    /// turn, and none has all of them.
    ///
    /// A cancelled task gets its answer nevertheless.
    func read<Value: Sendable>(
        for owner: UInt32? = nil, _ body: @escaping @Sendable (Reader) throws -> Value,
        _ done: @escaping @Sendable (Result<Value, StoreError>) -> Void
    ) {
        let user = owner ?? Self.own
        // The pool is not closed before all that came until then have left.
        let isOpen = isClosed.withLock { isClosed in
            if !isClosed { reads.enter() }
            return !isClosed
        }
        // Never inside the call, as the caller may have a lock.
        guard isOpen else { return DispatchQueue.global().async { done(.failure(.closed)) } }
        turns.withLock { $0.append({ [self] in start(for: user, body, done) }, for: user) }
        startNext()
    }

    private func startNext() {
        while let next = turns.withLock({ $0.next() }) { next.element() }
    }

    private func start<Value: Sendable>(
        for user: UInt32, _ body: @escaping @Sendable (Reader) throws -> Value,
        _ done: @escaping @Sendable (Result<Value, StoreError>) -> Void
    ) {
        let (path, unreadable) = (pool.path, unreadable)
        let end = { @Sendable [self] (result: Result<Value, StoreError>) in
            turns.withLock { $0.finish(user) }
            startNext()
            done(result)
            reads.leave()
        }
        // A stop does not wait for all that there may be.
        guard !isClosed.withLock(\.self) else { return DispatchQueue.global().async { end(.failure(.closed)) } }
        pool.asyncRead { connection in
            end(
                Result { () throws(StoreError) in
                    do {
                        return try body(Reader(connection: try connection.get(), unreadable: unreadable))
                    } catch {
                        let error = StoreError(.read, error, database: path)
                        if error.code == .damaged { unreadable.tell(ofDamage: error) }
                        throw error
                    }
                })
        }
    }
}
