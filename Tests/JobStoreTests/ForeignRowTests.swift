import GRDB
import GRDBSQLite
import JobModel
import Synchronization
import TestSupport
import Testing

@testable import JobStore

/// What the store does for a caller's question about another's job is what it does for one that there is not: it looks at as
/// many pages, and reads nothing of the row but whose it is.
@Suite struct ForeignRowTests {
    private static let stranger: UInt32 = 7
    /// In the midst of the ids, so that the way to where it would stand is as long as to one that is there.
    private static let removed: JobID = 4

    let directory: TemporaryDirectory
    let store: SQLiteStore
    private let reports: Reports

    init() throws {
        directory = try TemporaryDirectory()
        let reports = Reports()
        self.reports = reports
        store = try SQLiteStore(path: directory.path) { reports.add($0) }
    }

    private final class Reports: Sendable {
        private let all = Mutex<[StoreError]>([])
        var count: Int { all.withLock(\.count) }
        func add(_ error: StoreError) { all.withLock { $0.append(error) } }
    }

    /// Stores jobs of owner 1000 in many forms; gives their ids.
    private func fill() async throws -> [JobID] {
        let long = String(repeating: "x", count: 3_000_000)
        let spec = #"{"type": "value", "value": "\#(String(repeating: "y", count: 200_000))"}"#
        let ids = try await store.create(
            .example(), .example(source: spec), .example(#""delay": 9, "tags": ["t"], "key": "k""#), .example(),
            .example(), .example(), .example())
        try await store.save(Job.example().numbered(4).finished(at: .after(1)))
        _ = try await store.remove(Self.removed)
        try await store.save(
            Job.example().numbered(5).finished(at: .after(1)),
            Job.example().numbered(6).finished(.success(.string(long)), at: .after(1)),
            Job.example().numbered(7).finished(.failure(JobError(.dns, long)), at: .after(1)))
        return ids.filter { $0 != Self.removed }
    }

    /// How many pages SQLite looks at, and how many steps its program takes, while `body` reads, which
    /// tells how many it found.
    private func work(
        finding wanted: Int? = nil, _ body: @escaping @Sendable (Reader) throws -> Int
    ) async throws -> (pages: Int32, steps: Int) {
        let unreadable = UnreadableJobs { [reports] in reports.add($0) }
        return try await store.pool.read { connection in
            let reader = Reader(connection: connection, unreadable: unreadable)
            let database = connection.sqliteConnection
            // Prepared once for each connection, which reads the schema.
            let found = try body(reader)
            if let wanted { #expect(found == wanted) }
            func pages() -> Int32 {
                [SQLITE_DBSTATUS_CACHE_HIT, SQLITE_DBSTATUS_CACHE_MISS].reduce(0) { sum, counter in
                    var (count, most) = (Int32(0), Int32(0))
                    sqlite3_db_status(database, counter, &count, &most, 0)
                    return sum + count
                }
            }
            var steps = 0
            let before = pages()
            try withUnsafeMutablePointer(to: &steps) { counter in
                sqlite3_progress_handler(
                    database, 1,
                    { counter in
                        counter?.assumingMemoryBound(to: Int.self).pointee += 1
                        return 0
                    }, counter)
                defer { sqlite3_progress_handler(database, 0, nil, nil) }
                _ = try body(reader)
            }
            return (pages() - before, steps)
        }
    }

    /// The questions that a caller's methods come to.
    private static let questions: [@Sendable (Reader, JobID, UInt32) throws -> Int] = [
        { try $0.jobs([$1], owner: $2).count },
        { try $0.page([$1], owner: $2).jobs.count },
        { try $0.states(of: [$1], owner: $2).count },
    ]

    @Test(arguments: questions.indices)
    func foreignJob_isLookedForLikeNone(_ index: Int) async throws {
        let question = Self.questions[index]
        let ids = try await fill()
        let none = try await work(finding: 0) { try question($0, Self.removed, Self.stranger) }
        #expect(none.pages > 0 && none.steps > 0, "the counters work")
        for id in ids {
            let foreign = try await work(finding: 0) { try question($0, id, Self.stranger) }
            #expect(foreign.pages == none.pages, "\(id)")
            // Reading the owner and comparing it.
            #expect(foreign.steps == none.steps + 2, "\(id)")
            let own = try await work(finding: 1) { try question($0, id, 1000) }
            #expect(own.steps > foreign.steps, "\(id)")
        }
        // For all else of the row, more is to be done.
        let whole = try await work { try Self.questions[0]($0, 2, 1000) }
        #expect(whole.pages > none.pages)
        await store.close()
    }

    /// Whoever parsed a row that makes no sense would have reported it.
    @Test(arguments: questions.indices)
    func foreignRow_isNotParsed(_ index: Int) async throws {
        let question = Self.questions[index]
        let ids = try await fill()
        try await store.pool.writeWithoutTransaction {
            try $0.execute(sql: "UPDATE jobs SET spec = 'x', carried = 'x', state = 9; DELETE FROM large_specs")
        }
        for id in ids { _ = try await work(finding: 0) { try question($0, id, Self.stranger) } }
        #expect(reports.count == 0)
        guard index < 2 else { return await store.close() }
        _ = try await work(finding: 0) { try question($0, ids[0], 1000) }
        #expect(reports.count == 1, "the owner's question finds it")
        await store.close()
    }

    /// The listings of one user are as much work, however much there is of others.
    @Test func listing_isTheSameWork_howeverManyJobsOthersHave() async throws {
        _ = try await store.create(.example(#""tags": ["t"]"#, owner: Self.stranger))
        func list(_ change: (inout JobFilter) -> Void) -> JobFilter {
            var filter = JobFilter()
            filter.owner = Self.stranger
            change(&filter)
            return filter
        }
        let filters = [
            list { _ in }, list { $0.tag = "t" }, list { $0.queue = "default" }, list { $0.states = [.queued] },
            list { $0.after = 900 }, list { $0.order = .oldest }, list { $0.source = .timer }, list { $0.tag = "none" },
        ]
        func steps() async throws -> [Int] {
            var steps: [Int] = []
            for filter in filters { steps.append(try await work { try $0.page(filter).jobs.count }.steps) }
            for key in [nil, ScheduleKey(owner: 0, name: "a"), ScheduleKey(owner: 1000, name: "a")] {
                steps.append(
                    try await work { try $0.schedules(after: key, owner: Self.stranger, limit: 9).count }.steps)
            }
            return steps
        }
        func addOthers(_ count: Int, _ prefix: String) async throws {
            for number in 0..<count {
                for owner in [1, 1000] as [UInt32] {
                    _ = try await store.create(.example(#""tags": ["t", "none"]"#, owner: owner))
                    let key = ScheduleKey(owner: owner, name: "\(prefix)\(number)")
                    let schedule = Schedule(key: key, timing: .every(60_000), setAt: .after(0), specSize: 2)
                    _ = try await store.write(.setSchedule(schedule, spec: [:]))
                }
            }
        }
        // One on either side, as it is one step less where an index ends.
        try await addOthers(1, "a")
        let few = try await steps()
        try await addOthers(30, "b")
        #expect(try await steps() == few)
        await store.close()
    }
}
