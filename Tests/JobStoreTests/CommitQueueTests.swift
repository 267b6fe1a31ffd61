import Foundation
import GRDB
import JobModel
import Synchronization
import TestSupport
import Testing

@testable import JobStore

@Suite struct CommitQueueTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Calls `body` while the writer has to wait, so that all it enqueues is there when the writer goes on; gives what
    /// the calls were answered, in the order of the answers.
    private func answers<Value: Sendable>(
        _ store: SQLiteStore, _ count: Int,
        _ body: @escaping @Sendable (Int, @escaping @Sendable (Result<Value, StoreError>) -> Void) -> Void
    ) async throws -> [Result<Value, StoreError>] {
        let (stream, continuation) = AsyncStream<Result<Value, StoreError>>.makeStream()
        try await store.pool.barrierWriteWithoutTransaction { _ in
            for index in 0..<count { body(index) { continuation.yield($0) } }
        }
        var answers: [Result<Value, StoreError>] = []
        for await answer in stream {
            answers.append(answer)
            if answers.count == count { break }
        }
        return answers
    }

    @Test func changes_shareTransactions_whenTheyArriveWhileTheWriterIsBusy() async throws {
        let store = try SQLiteStore(path: directory.path)
        let commits = CommitCounter()
        store.pool.add(transactionObserver: commits, extent: .databaseLifetime)
        for number in 1...3 {
            _ = try await store.create(.example())
            #expect(commits.count == number)
        }
        let answers = try await answers(store, 500) { index, done in
            store.submit([try? .example(#""label": "\#(index)""#)].compactMap(\.self), done)
        }
        // The first that came had a transaction to itself, or with a few more; the rest had another.
        #expect(commits.count <= 5)
        #expect(try answers.map { try $0.get() } == (4...503).map { [.created($0)] })
        await store.close()
    }

    @Test func transaction_endsAtItsBound() async throws {
        let store = try SQLiteStore(path: directory.path, bound: .init(changes: 10, bytes: 1 << 20))
        let commits = CommitCounter()
        store.pool.add(transactionObserver: commits, extent: .databaseLifetime)
        _ = try await answers(store, 100) { _, done in store.submit([try? .example()].compactMap(\.self), done) }
        #expect((10...12).contains(commits.count))
        await store.close()
        let small = try SQLiteStore(path: directory.path, bound: .init(changes: 1000, bytes: 1))
        small.pool.add(transactionObserver: commits, extent: .databaseLifetime)
        let before = commits.count
        _ = try await answers(small, 7) { _, done in small.submit([try? .example()].compactMap(\.self), done) }
        #expect(commits.count == before + 7)
        await small.close()
    }

    @Test func connection_syncsEveryCommit() async throws {
        let store = try SQLiteStore(path: directory.path)
        let settings = try await store.pool.writeWithoutTransaction { connection in
            try ["synchronous", "journal_mode"].map { name in
                try String.fetchOne(connection, sql: "PRAGMA \(name)")
            }
        }
        #expect(settings == ["2", "wal"])
        await store.close()
    }

    @Test func group_failsWhole_whenTheDatabaseCannotGrow() async throws {
        let store = try SQLiteStore(path: directory.path)
        _ = try await store.create(.example())
        try await store.pool.writeWithoutTransaction { connection in
            let pages = try Int.fetchOne(connection, sql: "PRAGMA page_count") ?? 0
            try connection.execute(sql: "PRAGMA max_page_count = \(pages + 10)")
        }
        let text = String(repeating: "x", count: 1000)
        let answers = try await answers(store, 200) { index, done in
            store.submit([try? .example(source: #"{"type": "value", "value": "\#(text)"}"#)].compactMap(\.self), done)
        }
        var created: [JobID] = []
        for answer in answers {
            switch answer {
            case .success(let submissions):
                created += submissions.compactMap { if case .created(let id) = $0 { id } else { nil } }
            case .failure(let error):
                #expect(error.code == .write)
                #expect(error.message.contains(directory.database))
            }
        }
        // A few may have had a transaction of their own before the large one.
        #expect(created.count < 100)
        #expect(try await store.counts().map(\.count) == [created.count + 1])
        try await store.pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = 1000000") }
        #expect(try await store.create(.example()) == [JobID(created.count) + 2])
        await store.close()
    }

    @Test func group_goesOnWithoutTheOne_whenAChangeFailsForItself() async throws {
        let store = try SQLiteStore(path: directory.path)
        let answers: [Result<[Submission], StoreError>] = try await answers(store, 20) { index, done in
            if index == 10 {
                store.queue.enqueue(
                    CommitQueue.Change(
                        run: { _ in throw DatabaseError(resultCode: .SQLITE_CONSTRAINT) }, fail: { done(.failure($0)) })
                )
            } else {
                store.submit([try? .example()].compactMap(\.self), done)
            }
        }
        let failures = answers.compactMap { if case .failure(let error) = $0 { error.code } else { nil } }
        #expect(failures == [.write])
        #expect(try await store.counts().map(\.count) == [19])
        await store.close()
    }

    @Test func close_commitsWhatWasEnqueuedBefore() async throws {
        let store = try SQLiteStore(path: directory.path)
        let saved = Mutex(0)
        for _ in 0..<50 {
            store.submit([try .example()]) { result in if case .success = result { saved.withLock { $0 += 1 } } }
        }
        await store.close()
        #expect(saved.withLock(\.self) == 50)
        #expect(!FileManager.default.fileExists(atPath: directory.log))
        let again = try SQLiteStore(path: directory.path)
        #expect(try await again.counts().map(\.count) == [50])
        await again.close()
    }

    @Test(arguments: [(20, 200), (20, 40), (1000, 40)])
    func log_isUsedAgain_whenItWasWrittenIntoTheDatabase(_ pages: Int, _ mostPages: Int) async throws {
        let store = try SQLiteStore(path: directory.path, bound: .init(pagesInLog: pages, mostPagesInLog: mostPages))
        for _ in 0..<200 { _ = try await store.create(.example()) }
        let size = try FileManager.default.attributesOfItem(atPath: directory.log)[.size] as? Int
        // Each commit writes four pages or more.
        #expect(try #require(size) < 250 * 4096)
        await store.close()
    }
}

/// Counts the transactions that wrote something.
private final class CommitCounter: TransactionObserver, Sendable {
    private let commits = Mutex(0)

    var count: Int { commits.withLock(\.self) }

    func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { true }
    func databaseDidChange(with event: DatabaseEvent) {}
    // Told by SQLite itself, whoever prepared the statement that commits.
    func databaseWillCommit() { commits.withLock { $0 += 1 } }
    func databaseDidCommit(_ db: Database) {}
    func databaseDidRollback(_ db: Database) {}
}
