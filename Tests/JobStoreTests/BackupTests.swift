import Foundation
import JobModel
import TestSupport
import Testing

@testable import JobStore

@Suite struct BackupTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Copies what a store gives into a file, and gives its directory.
    private func copy(_ backup: StoreBackup) throws -> TemporaryDirectory {
        let target = try TemporaryDirectory()
        let part = try backup.read(offset: 0, length: backup.size)
        #expect(part.size == part.bytes.count)
        try Data(part.bytes).write(to: URL(fileURLWithPath: target.database))
        return target
    }

    private func body(_ name: String, _ size: Int) throws {
        let bodies = directory.path + "/bodies"
        try FileManager.default.createDirectory(atPath: bodies, withIntermediateDirectories: true)
        try Data((0..<size).map { UInt8(truncatingIfNeeded: $0) }).write(to: URL(fileURLWithPath: bodies + "/" + name))
    }

    @Test func backup_hasEveryJobAndBody() async throws {
        let store = try SQLiteStore(path: directory.path)
        var jobs: [Job] = []
        for index in 0..<3 {
            var job = try await store.existing(store.create(.example(#""label": "\#(index)""#))[0])
            job = try job.finished(at: .after(1))
            jobs.append(job)
        }
        jobs[0].bodies = [0: 600_000, 2: 5]
        // Its file has changed since.
        jobs[1].bodies = [0: 7]
        for job in jobs { try await store.save(job) }
        try body("1-0", 600_000)
        try body("1-2", 5)
        try body("2-0", 8)
        // Some pages become free, and are copied too.
        for _ in 0..<300 { _ = try await store.create(.example()) }
        for id in 10..<300 { _ = try await store.remove(JobID(id)) }

        let target = try copy(await store.backUp())
        await store.close()
        #expect(try !FileManager.default.contentsOfDirectory(atPath: directory.path).contains { $0.contains("backup") })
        let verification = try StateVerification(of: target.database)
        #expect(verification.flaws == [] && verification.jobs == 3 + 300 - 290)

        for _ in 0..<2 {
            let restored = try SQLiteStore(path: target.path)
            for job in jobs { #expect(try await restored.existing(job.id) == job) }
            await restored.close()
            let bodies = target.path + "/bodies"
            #expect(try FileManager.default.contentsOfDirectory(atPath: bodies).sorted() == ["1-0", "1-2"])
            #expect(
                try Data(contentsOf: URL(fileURLWithPath: bodies + "/1-0"))
                    == Data(contentsOf: URL(fileURLWithPath: directory.path + "/bodies/1-0")))
        }
        #expect(try StateVerification(of: target.path).flaws == [])
    }

    @Test func backup_isRefused_whileAnotherIsRead() async throws {
        let store = try SQLiteStore(path: directory.path)
        for index in 0..<300 { _ = try await store.create(.example(#""label": "label \#(index)""#)) }
        var backup: StoreBackup? = try await store.backUp()
        let refusal = await #expect(throws: StoreError.self) { try await store.backUp() }
        #expect(refusal?.code == .locked && backup != nil)
        backup = nil
        backup = try await store.backUp()
        // A read of it may not have let go of it yet.
        backup?.end()
        _ = try await store.backUp()
        #expect(try backup?.read(offset: 0, length: 6).bytes == Array("SQLite".utf8))
        backup?.end()
        backup = nil
        await store.close()
        let closed = await #expect(throws: StoreError.self) { try await store.backUp() }
        #expect(closed?.code == .closed)
    }

    /// A job whose result is a body of so many bytes, and a directory with a backup of it.
    private func backup(withBodyOf size: Int) async throws -> (Job, TemporaryDirectory) {
        let store = try SQLiteStore(path: directory.path)
        var job = try await store.existing(store.create(.example())[0]).finished(at: .after(1))
        job.bodies = [0: size]
        try await store.save(job)
        try body("1-0", size)
        let target = try copy(await store.backUp())
        await store.close()
        return (job, target)
    }

    /// A daemon was killed while it took the bodies out.
    @Test func bodies_areTakenOutAgain_whenThatWasCutShort() async throws {
        let (_, target) = try await backup(withBodyOf: 300_000)
        try FileManager.default.createDirectory(
            atPath: target.path + "/bodies", withIntermediateDirectories: false)
        try Data("half".utf8).write(to: URL(fileURLWithPath: target.path + "/bodies/1-0"))
        try await SQLiteStore(path: target.path).close()
        let bytes = try Data(contentsOf: URL(fileURLWithPath: target.path + "/bodies/1-0"))
        #expect(bytes.count == 300_000)
    }

    @Test(arguments: [
        ("UPDATE jobs SET size = size + 1000 WHERE id = 2", "counts for"),
        ("UPDATE jobs SET spec = 'x' WHERE id = 2", "spec makes no sense"),
        ("UPDATE jobs SET state = 9 WHERE id = 2", "state makes no sense"),
        ("UPDATE jobs SET finished_at = NULL WHERE id = 2", "since when"),
        ("UPDATE jobs SET parent = 77, parent_link = 0, parent_index = 0, parent_depth = 1 WHERE id = 2", "is a child"),
        ("INSERT INTO tags VALUES (77, 'x', 0)", "Job 77 has tags"),
        ("INSERT INTO large_specs VALUES (77, 'x')", "Job 77 has a spec"),
        ("INSERT INTO long_outcomes VALUES (77, 0, x'00')", "Job 77 has a result"),
        ("INSERT INTO templates VALUES (77, 0, 1, 'x')", "Job 77 has children's templates"),
        ("DELETE FROM state WHERE name = 'last_job'", "last job"),
        ("PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'jobs_due'", "damaged"),
    ])
    func verification_saysWhatIsWrong(_ sql: String, _ words: String) async throws {
        let store = try SQLiteStore(path: directory.path)
        let jobs = try await store.create(.example(), .example())
        for id in jobs { try await store.save(store.existing(id).finished(at: .after(1))) }
        await store.close()
        #expect(try StateVerification(of: directory.path).flaws == [])
        try DatabaseFile(directory.database).execute(sql)
        let before = try directory.contents()
        let found = try StateVerification(of: directory.path)
        #expect(found.flaws.contains { $0.contains(words) }, "\(found.flaws)")
        #expect(try directory.contents() == before)
    }

    @Test(arguments: [
        ("UPDATE schedules SET overlap = 'x'", "of user 1000 makes no sense"),
        ("DELETE FROM schedule_specs", "spec of another size, or none"),
    ])
    func verification_readsSchedules(_ sql: String, _ words: String) async throws {
        let store = try SQLiteStore(path: directory.path)
        let spec: JSON = ["source": ["type": "value", "value": 1]]
        let schedule = Schedule(
            key: ScheduleKey(owner: 1000, name: "nightly"), timing: .every(60_000), setAt: .after(0),
            specSize: spec.utf8.count)
        _ = try await store.write(.setSchedule(schedule, spec: spec))
        await store.close()
        #expect(try StateVerification(of: directory.path).flaws == [])
        try DatabaseFile(directory.database).execute(sql)
        let found = try StateVerification(of: directory.path)
        #expect(found.flaws.contains { $0.contains(words) }, "\(found.flaws)")
    }

    @Test func verification_isRefused_whenTheDatabaseIsOfAnotherVersion() async throws {
        try await SQLiteStore(path: directory.path).close()
        try DatabaseFile(directory.database).execute("PRAGMA user_version = 8")
        let error = #expect(throws: StoreError.self) { try StateVerification(of: directory.path) }
        #expect(error?.code == .otherVersion)
    }
}
