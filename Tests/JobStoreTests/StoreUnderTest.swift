import InMemoryStore
import JobModel
import JobStore
import TestSupport
import Testing

#if canImport(PostgreSQLStore)
    import PostgreSQLStore
#endif

/// What the suite runs against.
enum StoreKind: String, CaseIterable, CustomTestStringConvertible {
    case sqlite
    case memory
    case postgresql

    var testDescription: String { rawValue }

    /// Without PostgreSQL where that is not installed.
    static let allCases: [StoreKind] = [.memory] + readable
    /// Those with a reader.
    static let readable: [StoreKind] = [.sqlite] + (PostgreSQLCluster.shared == nil ? [] : [.postgresql])

    func make() throws -> StoreUnderTest {
        let directory = try TemporaryDirectory()
        switch self {
        case .memory: return StoreUnderTest(InMemoryStore())
        case .sqlite:
            let store = try SQLiteStore(path: directory.path)
            return StoreUnderTest(store, directory, reader: store.reader)
        case .postgresql:
            #if canImport(PostgreSQLStore)
                let store = try PostgreSQLStore(
                    PostgreSQLSettings(
                        address: #require(PostgreSQLCluster.shared).makeDatabase(), statementTimeout: 20),
                    path: directory.path, node: NodeDescription(name: "test"))
                return StoreUnderTest(store, directory, reader: store.reader)
            #else
                throw StoreError(.closed, "This build has no PostgreSQL; install libpq-dev.")
            #endif
        }
    }

    /// A store, and its reader.
    func makeReadable() throws -> (store: StoreUnderTest, reader: any JobReader) {
        let store = try make()
        return (store, try #require(store.reader))
    }
}

@Suite struct PostgreSQLPresenceTests {
    @Test(.enabled(if: PostgreSQLCluster.programs != nil, "PostgreSQL is not installed; its store is not tested."))
    func isInstalled_whereItsStoreIsTested() throws {
        #expect(StoreKind.allCases.contains(.postgresql))
    }
}

/// A new store, with what a test does with it.
final class StoreUnderTest {
    let store: any JobStore
    let reader: (any JobReader)?
    /// Gone with it.
    private let directory: TemporaryDirectory?

    init(_ store: any JobStore, _ directory: TemporaryDirectory? = nil, reader: (any JobReader)? = nil) {
        (self.store, self.directory, self.reader) = (store, directory, reader)
    }

    /// Runs `body` in a round that is to be committed, and gives what it gives.
    @discardableResult
    func round<Value>(
        at location: SourceLocation = #_sourceLocation, _ body: (any JobTransaction) throws -> Value
    ) throws -> Value {
        var value: Value?
        var thrown: (any Error)?
        let end = store.round { transaction throws(StoreError) in
            do { value = try body(transaction) } catch {
                thrown = error
                throw error as? StoreError ?? StoreError(.write, "The test failed.")
            }
        }
        if let thrown { throw thrown }
        if case .committed = end {} else { Issue.record("\(end)", sourceLocation: location) }
        return try #require(value, sourceLocation: location)
    }

    /// Runs `body` in a round that is undone.
    func undoneRound(_ body: (any JobTransaction) throws(StoreError) -> Void) {
        let end = store.round { transaction throws(StoreError) in
            try body(transaction)
            throw StoreError(.write, "It is to be undone.")
        }
        guard case .undone = end else {
            Issue.record("\(end)")
            return
        }
    }

    /// Inserts jobs in a round of their own; gives their ids.
    @discardableResult
    func insert(_ rows: [JobRow]) throws -> [JobID] { try round { try $0.create(rows) } }
}

extension JobTransaction {
    /// Inserts jobs; gives their ids.
    func create(_ rows: [JobRow]) throws -> [JobID] {
        try insert(rows.map { NewJobRow(row: $0, document: .spec(Array("{}".utf8))) })
    }

    @discardableResult
    func insert(_ jobs: [NewJobRow]) throws(StoreError) -> [JobID] {
        var inserted: [JobID] = []
        for job in jobs { inserted.append(try insert(job)) }
        return inserted
    }
}

extension JobRow {
    static func sample(
        owner: UInt32 = 1000, state: JobState = .queued, queue: String = "default", priority: Int = 0,
        key: String? = nil, tags: [String] = [], parent: Parent? = nil, source: SourceType = .url
    ) -> JobRow {
        JobRow(
            owner: owner, groups: nil, parent: parent,
            terms: JobTerms(
                plan: JobPlan(
                    source: JobPlan.Step(source: source, timeout: nil, retry: .standard), links: [],
                    deadline: nil),
                queue: queue, priority: priority, key: key, tags: tags),
            specSize: 100, createdAt: Timestamp(milliseconds: 1_700_000_000_000), state: state)
    }

    /// The same with a change.
    func with(_ change: (inout JobRow) -> Void) -> JobRow {
        var row = self
        change(&row)
        return row
    }

    /// A job with a value in each of its columns.
    static var full: JobRow {
        let step = JobPlan.Step(source: .download, timeout: 30, retry: .none)
        let retry = RetryPolicy(max: 7, initial: 0.25, factor: 1.5, maxDelay: 1e9, jitter: false)
        let retried = JobPlan.Step(source: nil, timeout: nil, retry: retry)
        var row = JobRow(
            owner: 4_294_967_295, groups: CallerGroups([4, 24]),
            parent: Parent(job: 7, link: 2, list: 9, index: 3, depth: 1),
            terms: JobTerms(
                plan: JobPlan(
                    source: step, links: [.pair(then: step, fail: nil, on: ["http"]), .both(retried), .finally(step)],
                    deadline: 60),
                queue: "bulk", priority: -5, key: nil, tags: ["a", "ü"]),
            specSize: 77, createdAt: Timestamp(milliseconds: 1_700_000_000_001), state: .running)
        let error = JobError(
            .http, "The server said no.", retryable: true, http: JobError.response(status: 503, reason: "No"))
        let blob = BlobReference(life: 3, number: 4, size: 5_000_000)
        row.waiting = .timer
        row.version = 12
        row.run = RunID(life: 3, number: 99)
        row.stop = .deadline
        row.hasDependents = true
        row.awaits = 6
        row.notifies = true
        // The highest that a client can set.
        row.rate = 1 << 50
        row.url = "http://example.org/x"
        row.due = 12_345
        row.notBefore = Timestamp(milliseconds: 1_700_000_000_002)
        row.deadline = 23_456
        row.startedAt = Timestamp(milliseconds: 1_700_000_000_003)
        row.link = 2
        row.attempt = 3
        row.linkStartedAt = Timestamp(milliseconds: 1_700_000_000_004)
        row.host = "example.org:443"
        row.carried = .success(.file(blob))
        row.outcomes = [
            LinkOutcome(
                link: 0, error: nil, startedAt: row.createdAt, finishedAt: row.createdAt, attempts: 1),
            LinkOutcome(
                link: 1, error: error, startedAt: row.createdAt, finishedAt: row.createdAt, attempts: 2),
        ]
        row.failedLink = FailedLink(link: 1, incoming: .success(.inline(Array("{\"a\":1}".utf8))))
        row.lastFailure = error
        row.blobs = [LinkBlob(link: 1, blob: blob)]
        row.checkpointSize = 17
        row.children = 4
        row.crashes = 2
        row.restarts = 3
        (row.node, row.followsPart) = ("ada-1", true)
        return row
    }
}

extension JobTransaction {
    func dueTimes() throws(StoreError) -> DueTimes { try dueTimes(after: .min, Timestamp(milliseconds: .min)) }
}
