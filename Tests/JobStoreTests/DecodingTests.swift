import Foundation
import JobModel
import Synchronization
import TestSupport
import Testing

@testable import JobStore

@Suite struct DecodingTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// A store of five jobs, changed behind its back.
    private func store(_ sql: String, _ report: @escaping @Sendable (StoreError) -> Void = { _ in }) async throws
        -> SQLiteStore
    {
        let first = try SQLiteStore(path: directory.path)
        _ = try await first.submit((0..<5).map { _ in try .example(#""tags": ["t"], "delay": 5"#) })
        _ = try await first.submit((0..<5).map { _ in try .example(#""tags": ["t"], "deadline": 5"#) })
        try await first.save(checkpoint: 1, of: 1, link: 0)
        await first.close()
        try DatabaseFile(directory.database).execute(sql)
        return try SQLiteStore(path: directory.path, report: report)
    }

    @Test(arguments: [
        "spec = 'x'", "spec = NULL", "spec = '{}'", "state = 9", "carried = '{}'", "checkpoint = '[]'",
        "outcomes = '[1]'", "stop = 'x'", "link = 3", "owner = -1", "spec = '{\"source\": {\"type\": \"x\"}}'",
        "last_failure = '{'", "attempt = 9223372036854775807", "attempt = -1", "children = 9223372036854775807",
        "checkpoint = '{\"link\": -1}'", "checkpoint = '{\"link\": 9223372036854775807}'",
        "parent = 1, parent_link = 0, parent_index = 9223372036854775807, parent_depth = 0",
        "size = 9000000 WHERE id = 3; INSERT INTO long_outcomes VALUES (3, 9223372036854775807, x'7B'); UPDATE jobs SET key = key",
        "size = 9000000 WHERE id = 3; INSERT INTO long_outcomes VALUES (3, -5, x'7B'); UPDATE jobs SET key = key",
    ])
    func job_isReported_whenItsRowMakesNoSense(_ change: String) async throws {
        let reports = Mutex<[StoreError]>([])
        let store = try await store("UPDATE jobs SET \(change) WHERE id = 3") { error in
            reports.withLock { $0.append(error) }
        }
        #expect(try await store.job(3) == nil)
        let error = reports.withLock(\.first)
        #expect(error?.code == .read)
        #expect(error?.message.contains("Job 3 ") == true)
        #expect(try await store.job(2) != nil)
        await store.close()
    }

    @Test func job_isRead_whereAMemberIsLongerThanNewOnesMayBe() async throws {
        let long = "replace(hex(zeroblob(50000)), '00', '/p')"
        let store = try await store(
            """
            UPDATE jobs SET spec = '{"source":{"type":"json","url":"https://h/","select":"' || \(long) || '"}}' WHERE id = 3
            """)
        #expect(try await store.existing(3).spec.source.action != store.existing(2).spec.source.action)
        await store.close()
    }

    /// Text that a client sent takes up to forty times as much memory, and a template is read with each of its children.
    @Test func templateWhoseValuesTakeTooMuch_isNotTakenApart() async throws {
        let reports = Mutex<[String]>([])
        let first = try SQLiteStore(path: directory.path)
        let root = try await first.stored()
        let template: JSON = ["source": ["type": "value", "value": "{{item}}"]]
        let new = NewChildren(parent: root, template: template, children: [.example(0, .item(1))])
        guard case .numbered(let ids) = try await first.write(.children(new)) else { throw WrongAnswer() }
        await first.close()
        let deep = String(repeating: "[", count: 50) + String(repeating: "]", count: 50)
        try DatabaseFile(directory.database).execute(
            """
            UPDATE templates SET template =
            '{"source":{"type":"value","value":[' || replace(hex(zeroblob(140000)), '00', '\(deep),') || '0]}}'
            """)
        let store = try SQLiteStore(path: directory.path) { error in reports.withLock { $0.append(error.message) } }
        #expect(try await store.job(ids[0]) == nil)
        #expect(reports.withLock(\.self).first?.contains("template") == true)
        await store.close()
    }

    @Test(arguments: [Int64.max, .min]) func times_areThoseThatCanBeWritten_whenStoredOnesAreNot(_ time: Int64)
        async throws
    {
        let store = try await store("UPDATE jobs SET created_at = \(time), started_at = \(time) WHERE id = 3")
        let job = try #require(try await store.job(3))
        #expect(job.createdAt.description == (time > 0 ? "9999-12-31T23:59:59.999Z" : "0000-01-01T00:00:00.000Z"))
        #expect(job.startedAt?.seconds(since: Timestamp(milliseconds: -time.signum())) != 0)
        await store.close()
    }

    @Test(arguments: [Int64.max, 9_007_199_254_740_993]) func store_isRefused_whenNumberOfLastJobMakesNoSense(
        _ number: Int64
    ) async throws {
        await #expect(throws: StoreError.self) {
            try await store(
                "UPDATE jobs SET id = \(number) WHERE id = 3; UPDATE state SET value = \(number) WHERE name = 'last_job'"
            )
        }
    }

    @Test func lists_leaveOutJobsThatMakeNoSense_andFillThePage() async throws {
        let reports = Mutex<[String]>([])
        let store = try await store("UPDATE jobs SET spec = 'x' WHERE id IN (2, 3, 7, 9)") { error in
            reports.withLock { $0.append(error.message) }
        }
        var filter = JobFilter()
        filter.limit = 3
        #expect(try await store.jobs(filter).map(\.id) == [10, 8, 6])
        filter.tag = "t"
        filter.order = .oldest
        #expect(try await store.jobs(filter).map(\.id) == [1, 4, 5])
        #expect(try await store.jobs(.due(at: .after(5), limit: 2)).map(\.id) == [1, 4])
        #expect(try await store.jobs(.overdue(at: .after(5), limit: 3)).map(\.id) == [6, 8, 10])
        #expect(try await store.ready(limit: 2).map(\.id) == [6, 8])
        #expect(try await store.counts().map(\.count).reduce(0, +) == 10)
        let told = reports.withLock(\.self)
        #expect(told.count == 4)
        #expect(told.contains { $0.contains("Job 9 ") })
        await store.close()
    }

    @Test func jobs_ofALaterVersion_areReadWithoutWhatIsNotKnown() async throws {
        let store = try await store(
            """
            UPDATE jobs SET state = 4, finished_at = 9, outcomes = '[{"link": 0, "ok": false, "new": 1, "startedAt":
            "2026-11-20T17:35:35.123Z", "finishedAt": "2026-11-20T17:35:36Z", "attempts": 2}]',
            carried = '{"error": {"kind": "new-kind", "message": "m", "new": [1]}, "new": 2}' WHERE id = 1
            """)
        let job = try await store.existing(1)
        #expect(job.carried == .failure(JobError(.init(rawValue: "new-kind"), "m")))
        #expect(job.outcomes.map(\.attempts) == [2])
        await store.close()
    }

    @Test func note_saysWhichItIs_whenItMakesNoSense() async throws {
        let store = try await store("UPDATE notes SET note = 'x'")
        let error = await #expect(throws: StoreError.self) { try await store.checkpoint(of: 1, link: 0) }
        #expect(error?.code == .read)
        #expect(error?.message.contains("job 1") == true)
        await store.close()
    }

    @Test func calls_sayThatTheDatabaseIsDamaged_whenTheyComeToAWrongPage() async throws {
        let store = try await store("PRAGMA user_version")
        // The store has no page in memory yet but those it opened the database with.
        let file = try #require(FileHandle(forUpdatingAtPath: directory.database))
        for page in 2..<(try file.seekToEnd() / 4096) {
            try file.seek(toOffset: page * 4096)
            try file.write(contentsOf: Data(repeating: 0xA5, count: 4096))
        }
        let read = await #expect(throws: StoreError.self) { try await store.download(to: "x") }
        #expect(read?.code == .damaged)
        #expect(read?.message.contains(directory.database) == true)
        let write = await #expect(throws: StoreError.self) { try await store.save(download: 1, to: "x") }
        #expect(write?.code == .damaged)
        await store.close()
    }

    @Test(arguments: [Outcome.success(nil), .success(["ok": 1]), .failure(JobError(.http, "m"))])
    func outcome_isTheSame_afterItWasWrittenDown(_ outcome: Outcome) {
        #expect(Outcome(json: outcome.json) == outcome)
        for incoming in [nil, outcome] {
            let failed = Job.FailedLink(link: 3, incoming: incoming)
            #expect(Job.FailedLink(json: failed.json) == failed)
        }
    }

    @Test func outcome_isNil_whenTheTextIsNone() {
        #expect(Outcome(json: 1) == nil)
        #expect(Outcome(json: [:]) == nil)
        #expect(Job.FailedLink(json: [:]) == nil)
    }
}
