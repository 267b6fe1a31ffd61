import GRDB
import JobModel
import TestSupport
import Testing

@testable import JobStore

/// No question may take longer because more jobs are stored that it does not ask for.
@Suite struct PlanTests {
    let directory: TemporaryDirectory
    let store: SQLiteStore

    init() throws {
        directory = try TemporaryDirectory()
        store = try SQLiteStore(path: directory.path)
    }

    /// How SQLite goes about each of the queries that `body` makes.
    private func plans(_ body: @escaping @Sendable (Reader) throws -> Void) async throws -> [String: [String]] {
        _ = try await store.create(.example(#""tags": ["t"]"#), .example(#""queue": "other""#, owner: 1))
        let unreadable = UnreadableJobs { _ in }
        return try await store.pool.read { connection in
            try Self.plans(connection) { try body(Reader(connection: connection, unreadable: unreadable)) }
        }
    }

    private static func plans(_ connection: Database, _ body: () throws -> Void) throws -> [String: [String]] {
        let queries = Queries()
        connection.trace(options: .statement) { queries.insert("\($0)") }
        try body()
        connection.trace(options: [])
        var plans: [String: [String]] = [:]
        for query in queries.texts where !["PRAGMA", "BEGIN", "COMMIT"].contains(where: query.hasPrefix) {
            let explanation = try PreparedStatement("EXPLAIN QUERY PLAN \(query)", on: connection)
            plans[query] = try explanation.rows { $0.text(3) }
        }
        return plans
    }

    private func expectSearches(
        sorting: Bool = false, _ sourceLocation: SourceLocation = #_sourceLocation,
        _ body: @escaping @Sendable (Reader) throws -> Void
    ) async throws {
        expectSearches(try await plans(body), sorting: sorting, sourceLocation)
    }

    private func expectSearches(
        _ plans: [String: [String]], sorting: Bool = false, _ sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(!plans.isEmpty, sourceLocation: sourceLocation)
        for (query, plan) in plans {
            let flaws = plan.filter { step in
                step.hasPrefix("SCAN") && !step.contains("json_each") && !step.contains("USING COVERING INDEX")
                    || step.contains("AUTOMATIC") || step.contains("TEMP B-TREE") && !sorting
                    // These pass over many jobs whose rows they must not read.
                    || step.contains("jobs_ready") && !step.contains("COVERING")
            }
            #expect(flaws.isEmpty, "\(query)\n\(plan)", sourceLocation: sourceLocation)
        }
    }

    @Test func plan_fails_whenATableIsScanned() async throws {
        let plans = try await plans { reader in
            _ = try reader.statement("SELECT id FROM jobs WHERE attempt = 3 ORDER BY created_at").rows { $0.text(0) }
        }
        #expect(plans.values.joined().contains { $0.hasPrefix("SCAN") })
        #expect(plans.values.joined().contains { $0.contains("TEMP B-TREE") })
    }

    /// Others' jobs of the same tag are not passed over: the time that it takes would tell of them.
    @Test func jobsOfATag_areFoundAmongTheCallersOnly() async throws {
        var filter = JobFilter()
        filter.tag = "t"
        filter.owner = 1000
        let asked = filter
        let plans = try await plans { _ = try $0.page(asked) }
        #expect(plans.values.joined().contains { $0.contains("tags_by_owner (owner=? AND tag=?)") })
    }

    @Test(arguments: [JobFilter.Order.newest, .oldest])
    func jobs_areFoundThroughAnIndex(_ order: JobFilter.Order) async throws {
        for states in [[], [.queued], [.queued, .failed]] as [Set<JobState>] {
            for queue in [nil, "other"] {
                for source in [nil, SourceType.value] {
                    for owner in [nil, UInt32(1000)] {
                        for after in [nil, JobID(99)] {
                            var filter = JobFilter()
                            filter.states = states
                            filter.queue = queue
                            filter.source = source
                            filter.owner = owner
                            filter.after = after
                            filter.order = order
                            filter.limit = 1
                            let plain = filter
                            try await expectSearches { _ = try $0.page(plain) }
                            filter.tag = "t"
                            let tagged = filter
                            try await expectSearches { _ = try $0.page(tagged) }
                            filter.parent = 1
                            let below = filter
                            // The children of one job, 10,000 at most for each list, are put in order.
                            try await expectSearches(sorting: true) { _ = try $0.page(below) }
                        }
                    }
                }
            }
        }
    }

    @Test func ready_isFoundThroughAnIndex() async throws {
        let many = try (0..<5000).map { _ in
            var job = try Job.example()
            job.host = "a:80"
            return job
        }
        _ = try await store.submit(many)
        for position in [nil, ReadyPosition(priority: 1, id: 1)] {
            for hosts in [[], ["a:80"]] as [Set<String>] {
                try await expectSearches {
                    _ = try $0.ready(queue: "default", owner: 1000, after: position, excluding: hosts, limit: 10)
                }
            }
        }
    }

    @Test func times_areFoundThroughAnIndex() async throws {
        try await expectSearches { _ = try $0.due(at: .after(1), limit: 1) }
        try await expectSearches { _ = try $0.overdue(at: .after(1), limit: 1) }
        try await expectSearches { _ = try $0.nextTimes() }
        try await expectSearches { _ = try $0.ends() }
    }

    @Test func children_areFoundThroughAnIndex() async throws {
        try await expectSearches { _ = try $0.children(of: 1, link: 0, from: 0, limit: 1) }
        try await expectSearches { _ = try $0.childStates(of: 1, link: 0) }
        try await expectSearches { _ = try $0.states(of: [1], owner: 1) }
        try await expectSearches { _ = try $0.gated(of: 1, link: 0, from: 0, limit: 1) }
    }

    @Test func checkpoints_areFoundThroughAnIndex() async throws {
        try await expectSearches { _ = try $0.checkpoints(of: 1, links: 0...Int.max) }
    }

    @Test func finishedJobs_areCountedThroughAnIndex() async throws {
        _ = try await store.create(.example(), .example())
        for id in 1...2 as ClosedRange<JobID> {
            try await store.save(Job.example().numbered(id).finished(at: .after(1)))
        }
        try await expectSearches { _ = try $0.purgeable(before: .after(1), keeping: 1) }
    }

    @Test func changes_goThroughAnIndex() async throws {
        let job = try Job.example(#""key": "k", "tags": ["t"]"#)
        let plans = try await store.pool.writeWithoutTransaction { connection in
            let writer = try Writer(connection, growing: GrowingFile(directory.database))
            return try Self.plans(connection) {
                _ = try writer.submit([job])
                _ = try writer.insert(
                    NewChildren(
                        parent: job.numbered(1), template: ["source": ["type": "value", "value": "{{item}}"]],
                        children: [.example(0, .item(1))]))
                try writer.removeTemplates(of: 1, fromLink: 1)
                try writer.save([job.numbered(1).finished(at: .after(1))])
                try writer.save(checkpoint: 1, of: 1, link: 0)
                try writer.save(checkpoint: nil, of: 1, link: 0)
                try writer.save(download: 1, to: "x")
                _ = try writer.tree(of: 1)
                _ = try writer.trees(fromLink: 0, of: 1)
                _ = try writer.finished(
                    upTo: FinishedEnd(owner: 1, last: FinishedPosition(finishedAt: .after(1), id: 0)), atMost: 1)
                try writer.freeKey(of: 1)
                try writer.remove([1])
                try writer.probe()
            }
        }
        // The tree that a query is building is read from its beginning to its end.
        expectSearches(plans.mapValues { plan in plan.filter { !$0.hasPrefix("SCAN tree") } })
        #expect(plans.count > 18)
    }

    @Test func recovery_goesOverAnIndexOnly() async throws {
        try await expectSearches { _ = try $0.counts() }
        try await expectSearches { _ = try $0.interrupted() }
    }
}

/// The texts of queries, as SQLite tells of them.
private final class Queries {
    private(set) var texts: Set<String> = []

    func insert(_ text: String) { texts.insert(text) }
}
