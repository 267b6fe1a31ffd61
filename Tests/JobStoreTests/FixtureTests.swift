import Foundation
import GRDB
import JobModel
import TestSupport
import Testing

@testable import JobStore

/// Databases as each version of deferd wrote them, which must open and be read forever.
///
/// `DEFERD_FIXTURES=directory swift test --filter fixture_isWritten` writes the one of the present version there.
@Suite struct FixtureTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test func fixture_isReadWhole_whenItIsOfVersion1() async throws {
        let fixture = try #require(Bundle.module.url(forResource: "Fixtures/version-1", withExtension: "db"))
        try FileManager.default.copyItem(at: fixture, to: URL(fileURLWithPath: directory.database))
        let store = try SQLiteStore(path: directory.path)
        for job in try VersionOne.jobs { #expect(try await store.existing(job.id) == job) }
        var filter = JobFilter()
        filter.tag = "tools"
        #expect(try await store.jobs(filter).map(\.id) == [6, 1])
        #expect(try await store.submit([VersionOne.jobs[0]]) == [.joined(1, .scheduled)])
        #expect(try await store.checkpoint(of: 3, link: 1) == ["part": "tool.part", "etag": "\"1\""])
        #expect(try await store.download(to: "/srv/tool.tar.gz") == ["etag": "\"1\"", "size": 100])
        #expect(try await store.recovery().queues == [QueueSettings(name: "slow", concurrency: 2, isSuspended: true)])
        #expect(try await store.childStates(of: 3, link: 0).map(\.state) == [.cancelled, .queued])
        #expect(try await store.counts().map(\.count).reduce(0, +) == VersionOne.jobs.count)
        #expect(try await store.recovery().running == [3])
        // Number 9 was given to a job that was removed.
        #expect(try await store.create(.example()) == [10])
        await store.close()
    }

    @Test func fixture_countsWhatItsJobsSay_whenItIsOfVersion1() async throws {
        let fixture = try #require(Bundle.module.url(forResource: "Fixtures/version-1", withExtension: "db"))
        try FileManager.default.copyItem(at: fixture, to: URL(fileURLWithPath: directory.database))
        let store = try SQLiteStore(path: directory.path)
        let sizes = try await store.jobs(.jobs(Array(1...8))).map(\.storedSize)
        #expect(try await store.counts().reduce(0) { $0 + $1.bytes } == sizes.reduce(0, +))
        let ready = try await store.pool.read { connection in
            let reader = Reader(connection: connection, unreadable: UnreadableJobs { _ in })
            return try reader.ready(queue: "slow", owner: 0, after: nil, excluding: [], limit: 9)
        }
        #expect(ready.map(\.position.id) == [2])
        await store.close()
    }

    @Test(arguments: 2...8) func fixture_isReadWhole_whenItIsOfVersion(_ version: Int) async throws {
        let fixture = try #require(Bundle.module.url(forResource: "Fixtures/version-\(version)", withExtension: "db"))
        try FileManager.default.copyItem(at: fixture, to: URL(fileURLWithPath: directory.database))
        let store = try SQLiteStore(path: directory.path)
        let jobs = try VersionOne.jobs
        for job in jobs.dropFirst() { #expect(try await store.existing(job.id) == job) }
        var crashed = jobs[0]
        crashed.crashes = 2
        #expect(try await store.existing(1) == crashed)
        let children = try await store.jobs(.children(of: 3, link: 1, from: 0, limit: 9))
        #expect(children.map(\.spec.json) == VersionTwo.childSpecs)
        #expect(children.map(\.isGated) == [false, true, false, false])
        #expect(children.map(\.state) == [.queued, .queued, .queued, .failed])
        // As the version that wrote them counted.
        #expect(try await store.counts().reduce(0) { $0 + $1.bytes } > 0)
        #expect(
            try await store.recovery().queues == [
                QueueSettings(name: "fast", concurrency: 8, perUser: 3),
                QueueSettings(name: "slow", concurrency: 2, isSuspended: true),
            ])
        if version >= 8 {
            #expect(try await store.existing(14).groups == VersionEight.groups)
            #expect(try await store.recovery().schedules.map(\.schedule) == [VersionEight.schedule])
        }
        #expect(try await store.create(.example()) == [version >= 8 ? 15 : 14])
        await store.close()
    }

    @Test(arguments: 1...4) func bodies_areCounted_whenTheDatabaseKnowsNone(_ version: Int) async throws {
        let fixture = try #require(Bundle.module.url(forResource: "Fixtures/version-\(version)", withExtension: "db"))
        try FileManager.default.copyItem(at: fixture, to: URL(fileURLWithPath: directory.database))
        let bodies = directory.path + "/bodies"
        try FileManager.default.createDirectory(atPath: bodies, withIntermediateDirectories: false)
        for (name, size) in [("4-0", 100_000), ("4-3", 5), ("99-0", 7), ("no", 7), ("5-x", 7)] {
            try Data(count: size).write(to: URL(fileURLWithPath: bodies + "/" + name))
        }
        for _ in 0..<2 {
            let store = try SQLiteStore(path: directory.path)
            #expect(try await store.existing(4).bodies == [0: 100_000, 3: 5])
            #expect(try await store.existing(5).bodies == [:])
            let sum = try await store.pool.read { try Int64.fetchOne($0, sql: "SELECT size FROM jobs WHERE id = 4") }
            let counted = try await store.counts().filter { $0.state == .succeeded }.reduce(0) { $0 + $1.bytes }
            #expect(sum.map { $0 > 100_005 && $0 < 101_000 && counted == $0 } == true)
            await store.close()
        }
    }

    @Test func longOutcomes_goIntoPartsOfTheirOwn_whenTheDatabaseIsOfVersion2() async throws {
        let fixture = try #require(Bundle.module.url(forResource: "Fixtures/version-2", withExtension: "db"))
        try FileManager.default.copyItem(at: fixture, to: URL(fileURLWithPath: directory.database))
        let long = JSON.string(String(repeating: "ä", count: 700_000))
        let text = String(decoding: long.utf8, as: UTF8.self)
        let file = try DatabaseFile(directory.database)
        try file.execute("UPDATE jobs SET carried = '{\"ok\":\(text)}', size = 1500000 WHERE id IN (3, 4)")
        let store = try SQLiteStore(path: directory.path)
        #expect(try await store.existing(3).carried == .success(long))
        #expect(try await store.existing(4).storedResult == long.size)
        guard case .result(let part) = try await store.read(.result(of: 4, offset: 262_140, length: 9)) else {
            throw WrongAnswer()
        }
        #expect(part == ResultPart(of: long.utf8, offset: 262_140, length: 9))
        await store.close()
    }

    @Test(.enabled(if: ProcessInfo.processInfo.environment["DEFERD_FIXTURES"] != nil))
    func fixture_isWritten() async throws {
        let store = try SQLiteStore(path: directory.path)
        let jobs = try VersionOne.jobs
        let ids = try await store.submit(jobs).compactMap { if case .created(let id) = $0 { id } else { nil } }
        #expect(ids == jobs.map(\.id))
        #expect(try await store.remove(store.create(.example())[0]) == [9])
        try await store.save(checkpoint: ["part": "tool.part", "etag": "\"1\""], of: 3, link: 1)
        try await store.save(download: ["etag": "\"1\"", "size": 100], to: "/srv/tool.tar.gz")
        try await store.save(QueueSettings(name: "slow", concurrency: 2, isSuspended: true))
        try await store.save(QueueSettings(name: "fast", concurrency: 8, perUser: 3))
        var crashed = jobs[0]
        crashed.crashes = 2
        try await store.save(crashed)
        let children = try await withCheckedContinuation { continuation in
            store.write(.children(VersionTwo.children(of: jobs[2]))) { continuation.resume(returning: $0) }
        }.get()
        guard case .numbered([10, 11, 12, 13]) = children else { throw WrongAnswer() }
        var grouped = try Job.example()
        grouped.groups = VersionEight.groups
        #expect(try await store.create(grouped) == [14])
        _ = try await store.write(.setSchedule(VersionEight.schedule, spec: ["source": ["type": "value", "value": 1]]))
        await store.close()
        let target = try #require(ProcessInfo.processInfo.environment["DEFERD_FIXTURES"])
        try FileManager.default.copyItem(
            atPath: directory.database, toPath: "\(target)/version-\(Schema.version).db")
    }
}

/// What the database of version 8 holds beside that.
private enum VersionEight {
    static let groups = CallerGroups([4, 1000])
    static let schedule = {
        var schedule = Schedule(
            key: ScheduleKey(owner: 1000, name: "nightly"), timing: .every(60_000), setAt: .after(0), specSize: 40)
        schedule.groups = groups
        return schedule
    }()
}

/// What the database of version 2 holds beside that.
private enum VersionTwo {
    private static let large = String(repeating: "large ", count: 300)

    static func children(of parent: Job) -> NewChildren {
        NewChildren(
            parent: parent, template: ["source": ["type": "value", "value": ["{{item/n}}", "{{index}}"]]],
            children: [
                .example(0, .item(["n": 1.50])),
                .example(1, .item(["n": .string(large)]), queue: "slow", priority: 5, tags: ["tools"], isGated: true),
                .example(2, .spec(["source": ["type": "value", "value": "own"], "queue": "fast"]), queue: "fast"),
                .example(3, .invalid(JobError(.template, "It finds nothing."))),
            ])
    }

    static var childSpecs: [JSON] {
        [
            ["source": ["type": "value", "value": [1.50, 0]], "queue": "default"],
            ["source": ["type": "value", "value": [.string(large), 1]], "queue": "slow", "priority": 5],
            ["source": ["type": "value", "value": "own"], "queue": "fast"],
            [
                "source": ["type": "error", "kind": "template", "message": "It finds nothing."],
                "queue": "default",
            ],
        ]
    }
}

/// What the database of version 1 holds.
private enum VersionOne {
    static var jobs: [Job] {
        get throws {
            let failure = failure
            var jobs = try [
                job(#""key": "tool", "tags": ["tools", "ä"], "label": "the tool", "priority": 7"#, .scheduled),
                job(#""queue": "slow", "deadline": 600"#, .queued, owner: 0),
                job(
                    #""then": [{"then": {"source": {"type": "download", "url": "http://localhost/a", "path": "a"}}}]"#,
                    source: #"{"type": "list", "jobs": []}"#, .running),
                job("", .succeeded),
                job(#""then": [{"fail": {"throw": {"message": "m"}}, "on": ["http"]}]"#, .failed),
                job(#""tags": ["tools"]"#, .cancelled),
                job("", .cancelled, parent: .init(job: 3, link: 0, index: 0, depth: 1)),
                job(
                    "", source: #"{"type": "value", "value": "\#(String(repeating: "large ", count: 300))"}"#,
                    .queued, parent: .init(job: 3, link: 0, index: 1, depth: 1)),
            ]
            for index in jobs.indices { jobs[index].id = JobID(index) + 1 }
            jobs[0].notBefore = .after(60)
            jobs[0].attempt = 1
            jobs[0].lastFailure = failure
            jobs[1].deadlineAt = .after(600)
            jobs[1].host = "localhost:80"
            jobs[2].link = 1
            jobs[2].attempt = 2
            jobs[2].startedAt = .after(1)
            jobs[2].linkStartedAt = .after(2)
            jobs[2].children = 2
            jobs[2].carried = .success([["ok": true, "value": nil], ["ok": false, "value": 1.50]])
            jobs[2].outcomes = [outcome(0, nil)]
            jobs[3].carried = .success(nil)
            jobs[4].link = 1
            jobs[4].carried = .failure(failure)
            jobs[4].failedLink = .init(link: 1, incoming: .failure(failure))
            jobs[4].outcomes = [outcome(0, failure), outcome(1, failure)]
            jobs[5].stop = .cancelled
            jobs[5].failedLink = .init(link: 0, incoming: nil)
            jobs[5].carried = .failure(Job.Stop.cancelled.error)
            for index in [3, 4, 5, 6] { jobs[index].finishedAt = .after(9) }
            return jobs
        }
    }

    private static func job(
        _ members: String, source: String = #"{"type": "value", "value": 1}"#, _ state: JobState, owner: UInt32 = 1000,
        parent: Job.Parent? = nil
    ) throws -> Job {
        let spec = try JobSpec.parsing(#"{"source": \#(source)\#(members.isEmpty ? "" : ", ")\#(members)}"#)
        return Job(spec: spec, owner: owner, parent: parent, state: state, createdAt: .after(0))
    }

    private static var failure: JobError {
        var error = JobError(.http, "No.", retryable: true, http: .init(status: 503, reason: "Busy"))
        error.link = 1
        error.attempts = 3
        error.cause = JobError(.init(rawValue: "own-kind"), "None.")
        error.failures = [JobError(.dns, "None.")]
        error.cause?.job = 7
        error.cause?.index = 2
        return error
    }

    private static func outcome(_ link: Int, _ error: JobError?) -> LinkOutcome {
        LinkOutcome(link: link, error: error, startedAt: .after(3), finishedAt: .after(4), attempts: 2)
    }
}
