import Foundation
import GRDB
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

    @Test func backup_hasEveryJobAndBody_andChecksums() async throws {
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
        #expect(try DatabaseHeader(of: target.database)?.hasChecks == true)

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

    @Test func backup_isRefused_whileAnotherIsRead_orAPageIsDamaged() async throws {
        var store = try SQLiteStore(path: directory.path)
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

        store = try SQLiteStore(path: directory.path)
        var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: directory.database)))
        let label = try #require(bytes.firstRange(of: Array("label 200".utf8)))
        bytes[label.lowerBound] ^= 1
        try #require(FileHandle(forUpdatingAtPath: directory.database)).write(contentsOf: Data(bytes))
        for _ in 0..<2 {
            let error = await #expect(throws: StoreError.self) { try await store.backUp() }
            #expect(error?.code == .damaged)
        }
        await store.close()
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

    /// Leaves what a daemon does that is killed while it changes the backup that it starts from: some pages are changed and
    /// others are not, and a journal has what they were.
    private func cutShort(_ source: TemporaryDirectory, in target: TemporaryDirectory) throws {
        let queue = try DatabaseQueue(path: source.database)
        try queue.writeWithoutTransaction { connection in
            // With few pages in memory SQLite writes them before the transaction ends.
            try connection.execute(
                sql: """
                    PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA cache_size = 10;
                    BEGIN; DROP TABLE \(BackupBodies.table)
                    """)
            for ending in ["", "-journal"] {
                try FileManager.default.copyItem(
                    atPath: source.database + ending, toPath: target.database + ending)
            }
            try connection.execute(sql: "ROLLBACK")
        }
        try queue.close()
    }

    @Test func backup_isWhole_whenTheFirstStartFromItWasCutShort() async throws {
        let (job, whole) = try await backup(withBodyOf: 600_000)
        let (started, verified) = (try TemporaryDirectory(), try TemporaryDirectory())
        for target in [started, verified] {
            try cutShort(whole, in: target)
            #expect(try HotJournal.isThere(for: target.database))
            #expect(try target.contents()["deferd.db"] != whole.contents()["deferd.db"])
        }
        let verification = try StateVerification(of: verified.path)
        #expect(verification.flaws == [] && verification.jobs == 1)
        #expect(try verified.contents() == whole.contents())
        let restored = try SQLiteStore(path: started.path)
        #expect(try await restored.existing(job.id) == job)
        await restored.close()
        #expect(try Data(contentsOf: URL(fileURLWithPath: started.path + "/bodies/1-0")).count == 600_000)
        #expect(try StateVerification(of: started.path).flaws == [])
    }

    /// SQLite deletes the file that a journal names at its end, and whoever checks a backup of another's may be root.
    @Test(arguments: geteuid() == 0 ? [true, false] : [true])
    func journal_isNotCarriedOut_whereItIsNotDeferds(namesAnother: Bool) async throws {
        let (_, whole) = try await backup(withBodyOf: 600_000)
        let target = try TemporaryDirectory()
        try cutShort(whole, in: target)
        let victim = target.path + "/victim"
        try Data("here".utf8).write(to: URL(fileURLWithPath: victim))
        if namesAnother {
            func number(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
            let name = Array(victim.utf8)
            let end: [UInt8] =
                number(0x4000_0000 / 4096 + 1) + name + number(name.count)
                + number(name.reduce(0) { $0 + Int(Int8(bitPattern: $1)) })
                + [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
            let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: target.database + "-journal"))
            try handle.seekToEnd()
            try handle.write(contentsOf: end)
            try handle.close()
        } else {
            #expect(chown(target.database + "-journal", 61_001, 61_001) == 0)
        }
        let before = try target.contents()
        #expect(try StateVerification(of: target.path).flaws.contains { $0.contains("-journal is not of deferd") })
        #expect(throws: StoreError.self) { try SQLiteStore(path: target.path) }
        #expect(try Data(contentsOf: URL(fileURLWithPath: victim)) == Data("here".utf8))
        #expect(try target.contents()["deferd.db"] == before["deferd.db"])
    }

    /// Somebody put another database where that one was.
    @Test func journal_isNotTakenForOneOfAnotherDatabase() async throws {
        let (_, whole) = try await backup(withBodyOf: 600_000)
        for isThere in [false, true] {
            let target = try TemporaryDirectory()
            try cutShort(whole, in: target)
            try FileManager.default.removeItem(atPath: target.database)
            if isThere {
                let other = try TemporaryDirectory()
                let store = try SQLiteStore(path: other.path)
                for index in 0..<3000 { _ = try await store.create(.example(#""label": "\#(index)""#)) }
                await store.close()
                try FileManager.default.copyItem(atPath: other.database, toPath: target.database)
            }
            let error = #expect(throws: StoreError.self) { try SQLiteStore(path: target.path) }
            #expect(error?.code == .damaged, "\(String(describing: error))")
        }
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

    @Test(arguments: 1...6) func verification_findsNothingWrong_whereNothingIs(_ version: Int) async throws {
        let fixture = try #require(Bundle.module.url(forResource: "Fixtures/version-\(version)", withExtension: "db"))
        try FileManager.default.copyItem(at: fixture, to: URL(fileURLWithPath: directory.database))
        let before = try directory.contents()
        let found = try StateVerification(of: directory.path)
        #expect(found.flaws == [] && found.isOlder == (version < Schema.version))
        #expect(try directory.contents() == before)
        try await SQLiteStore(path: directory.path).close()
        let updated = try StateVerification(of: directory.path)
        #expect(updated.flaws == [], "\(updated.flaws)")
        #expect(!updated.isOlder && updated.jobs >= 8)
    }
}
