import Dispatch
import InMemoryStore
import JobModel
import Synchronization

@testable import JobStore

/// A job store in memory: nothing outlives the object, and it answers on a thread of its own.
final class MemoryStore: JobStore {
    private struct State {
        var tables: MemoryTables
        var isClosed = false
    }

    private let state: Mutex<State>
    private let queue = DispatchQueue(label: "deferd.store.memory")

    init(_ tables: MemoryTables = MemoryTables()) {
        var tables = tables
        tables.restart()
        state = Mutex(State(tables: tables))
    }

    /// What is stored at present. A store made of a copy is what a daemon finds after a crash.
    var tables: MemoryTables { state.withLock { $0.tables } }

    func write(_ write: StoreWrite, _ done: @escaping @Sendable (Result<StoreWritten, StoreError>) -> Void) {
        answer(done) { $0.write(write) }
    }

    func read(_ read: StoreRead, _ done: @escaping @Sendable (Result<StoreRows, StoreError>) -> Void) {
        answer(done) { $0.read(read) }
    }

    func mark(_ job: JobID, isWorking: Bool) {
        state.withLock { $0.tables.mark(job, isWorking: isWorking) }
    }

    func save(
        checkpoint: JSON?, of job: JobID, link: Int, _ done: @escaping @Sendable (Result<Void, StoreError>) -> Void
    ) {
        answer(done) { $0.save(checkpoint: checkpoint, of: job, link: link) }
    }

    func save(
        download: JSON, to path: String, _ done: @escaping @Sendable (Result<Void, StoreError>) -> Void
    ) {
        answer(done) { $0.save(download: download, to: path) }
    }

    func checkpoint(of job: JobID, link: Int) async throws(StoreError) -> JSON? {
        try await answer { $0.checkpoint(of: job, link: link) }
    }

    func checkpoints(of job: JobID, links: ClosedRange<Int>) async throws(StoreError) -> [Int: JSON] {
        try await answer { $0.checkpoints(of: job, links: links) }
    }

    func unfinishedTransfers(of job: JobID?, atMost limit: Int) async throws(StoreError) -> [UnfinishedTransfer] {
        try await answer { $0.unfinishedTransfers(of: job, atMost: limit) }
    }

    func download(to path: String) async throws(StoreError) -> JSON? {
        try await answer { $0.download(to: path) }
    }

    func backUp() async throws(StoreError) -> StoreBackup {
        throw StoreError(.read, "What is in memory cannot be copied; use a database.")
    }

    func close() async {
        await withCheckedContinuation { continuation in
            queue.async {
                self.state.withLock { state in
                    state.isClosed = true
                    state.tables.clearMarks()
                }
                continuation.resume()
            }
        }
    }

    private func answer<Value: Sendable>(
        _ body: @escaping @Sendable (inout MemoryTables) -> Value
    ) async throws(StoreError) -> Value {
        try await withCheckedContinuation { continuation in
            answer({ continuation.resume(returning: $0) }, body)
        }.get()
    }

    /// Runs `body` after everything that was asked before.
    private func answer<Value: Sendable>(
        _ done: @escaping @Sendable (Result<Value, StoreError>) -> Void,
        _ body: @escaping @Sendable (inout MemoryTables) -> Value
    ) {
        queue.async {
            done(self.state.withLock { state in state.isClosed ? .failure(.closed) : .success(body(&state.tables)) })
        }
    }
}
