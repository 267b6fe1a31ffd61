import Foundation
import JobModel
import Synchronization
import TestSupport
import Testing

@testable import JobStore

/// Copies of the state, and the look for what is wrong with one.
@Suite struct CopyTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        try FileManager.default.createDirectory(
            atPath: directory.path + "/bodies", withIntermediateDirectories: false)
    }

    private func blob(_ number: Int64, _ size: Int) throws -> BlobReference {
        let blob = BlobReference(life: 1, number: number, size: Int64(size))
        let bytes = Data((0..<size).map { UInt8(truncatingIfNeeded: $0) })
        try bytes.write(to: URL(fileURLWithPath: directory.path + "/bodies/" + blob.name))
        return blob
    }

    private func finished(_ value: StoredValue) -> JobRow {
        .sample(state: .succeeded).with {
            ($0.carried, $0.finishedAt) = (.success(value), Timestamp(milliseconds: 5))
        }
    }

    /// Puts the copy in place in a directory of its own.
    private func restore(_ path: String) throws -> TemporaryDirectory {
        let target = try TemporaryDirectory()
        try FileManager.default.moveItem(atPath: path, toPath: target.database)
        return target
    }

    private func expectWhole(_ path: String, at location: SourceLocation = #_sourceLocation) throws {
        let flaws = try StateVerification(of: path).flaws
        #expect(flaws == [], sourceLocation: location)
    }

    @Test func copyHasEveryRowAndFile() throws {
        let store = try SQLiteStore(path: directory.path)
        let rounds = StoreUnderTest(store)
        let blobs = [try blob(1, 600_000), try blob(2, 5)]
        // A job that runs, and one whose file is gone as it needs it no more.
        let ids = try rounds.insert(
            blobs.map { finished(.file($0)) } + [
                .sample(state: .running).with { $0.run = RunID(life: 1, number: 7) }
            ])
        let old = try rounds.insert([finished(.file(blob(3, 9)))])[0]
        try rounds.round { transaction in
            let row = try #require(try transaction.job(old))
            try transaction.update(row.with { $0.carried = .success(.null) })
        }
        try FileManager.default.removeItem(atPath: directory.path + "/bodies/1-3")
        let rows = try rounds.round { transaction in try ids.map { try transaction.job($0) } }
        let path = try store.reader.copyState()
        // Another file system may be mounted there, to which it could not be moved.
        #expect(path.hasPrefix(store.blobs + "/"))
        try expectWhole(path)
        let target = try restore(path)
        for isFirst in [true, false] {
            let restored = try SQLiteStore(path: target.path)
            // What ran then was not what killed the daemon.
            #expect(restored.isAfterCleanStop == isFirst)
            #expect(
                try StoreUnderTest(restored).round { transaction in try ids.map { try transaction.job($0) } } == rows)
            for blob in blobs {
                #expect(
                    FileManager.default.contentsEqual(
                        atPath: restored.blobs + "/" + blob.name, andPath: store.blobs + "/" + blob.name))
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: restored.blobs).count == 2)
        }
        try expectWhole(target.path)
    }

    /// The output of a run that was lost is measured later, and none is synced.
    @Test func copyHasOutput_howeverLongItIs() throws {
        let store = try SQLiteStore(path: directory.path)
        let outputs = [try blob(7, 600_000), try blob(8, 100)]
        let unmeasured = outputs.map { BlobReference(life: $0.life, number: $0.number, size: 0) }
        let gone = BlobReference(life: 1, number: 9, size: 50)
        try StoreUnderTest(store).insert([
            finished(.null).with { row in
                row.blobs = (unmeasured + [gone]).enumerated().map { attempt, blob in
                    LinkBlob(link: 0, blob: blob, attempt: attempt + 1)
                }
            }
        ])
        let path = try store.reader.copyState()
        try expectWhole(path)
        let target = try restore(path)
        let restored = try SQLiteStore(path: target.path)
        for blob in outputs {
            #expect(
                FileManager.default.contentsEqual(
                    atPath: restored.blobs + "/" + blob.name, andPath: store.blobs + "/" + blob.name))
        }
        restored.close(isClean: true)
        try expectWhole(target.path)
    }

    @Test func filesAreTakenOutAgain_whenThatWasCutShort() throws {
        let store = try SQLiteStore(path: directory.path)
        try StoreUnderTest(store).insert([finished(.file(blob(1, 300_000)))])
        let target = try restore(store.reader.copyState())
        try FileManager.default.createDirectory(atPath: target.path + "/bodies", withIntermediateDirectories: false)
        try target.write("half", to: "bodies/1-1")
        try SQLiteStore(path: target.path).close(isClean: true)
        #expect(StateDirectory.size(target.path + "/bodies/1-1") == 300_000)
    }

    /// Each round moves a job from one queue to the other: a copy of one moment has one half in each.
    @Test func copyIsOfOneMoment_whileRoundsGoOn() async throws {
        let store = try SQLiteStore(path: directory.path)
        let rounds = StoreUnderTest(store)
        let text = [UInt8](repeating: 32, count: 20_000)
        try rounds.round { transaction in
            let jobs = (0..<400).map { NewJobRow(row: .sample(priority: $0 % 2), document: .spec(text)) }
            _ = try transaction.insert(jobs)
        }
        let isDone = Atomic(false)
        let reader = store.reader
        async let copied = Task.detached {
            defer { isDone.store(true, ordering: .relaxed) }
            return try reader.copyState()
        }.value
        var count = 0
        while !isDone.load(ordering: .relaxed) || count < 3 {
            try rounds.round { transaction in
                for id in [Int64(count % 200) * 2 + 1, Int64(count % 200) * 2 + 2] {
                    let row = try #require(try transaction.job(id))
                    try transaction.update(row.with { ($0.crashes, $0.version) = ($0.crashes + 1, $0.version + 1) })
                }
            }
            count += 1
        }
        let path = try await copied
        try expectWhole(path)
        let copy = try SQLiteConnection(path, errors: .read)
        #expect(
            try copy.number(
                "SELECT count(*) FROM jobs a JOIN jobs b ON b.id = a.id + 1 WHERE a.id % 2 AND a.crashes != b.crashes")
                == 0)
    }

    @Test func copyEnds_whenTheStoreIsClosed() throws {
        let store = try SQLiteStore(path: directory.path)
        store.close(isClean: true)
        let error = #expect(throws: StoreError.self) { try store.reader.copyState() }
        #expect(error?.code == .closed)
        #expect(try FileManager.default.contentsOfDirectory(atPath: store.blobs).isEmpty)
    }

    @Test func whatAKilledDaemonLeftOfACopyGoes() throws {
        for name in ["deferd.backup", "deferd.backup-journal"] { try directory.write("half", to: "bodies/" + name) }
        try SQLiteStore(path: directory.path).close(isClean: true)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path + "/bodies").isEmpty)
    }

    @Test(arguments: [
        ("UPDATE jobs SET submitted = x'01' WHERE id = 2", "Job 2 makes no sense"),
        ("UPDATE jobs SET state = 9 WHERE id = 2", "Job 2 makes no sense"),
        ("UPDATE jobs SET finished_at = NULL WHERE id = 2", "since when"),
        ("UPDATE jobs SET state = 0 WHERE id = 2", "waits for a time"),
        ("UPDATE jobs SET parent = 77, parent_link = 0, list = 1, parent_index = 0 WHERE id = 2", "is a child"),
        ("UPDATE jobs SET text = NULL WHERE id = 2", "Job 2 has no spec"),
        ("INSERT INTO tags VALUES (0, 'x', 77)", "Job 77 has tags"),
        ("INSERT INTO documents VALUES (77, x'7b7d')", "Job 77 has documents"),
        ("UPDATE schedules SET record = x'00'", "of user 1000 makes no sense"),
        ("UPDATE schedules SET spec = NULL", "spec of another size, or none"),
        ("DELETE FROM state", "its numbers make no sense"),
        ("PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'jobs_due'", "damaged"),
    ])
    func verificationSaysWhatIsWrong(_ sql: String, _ words: String) throws {
        let store = try SQLiteStore(path: directory.path)
        let rounds = StoreUnderTest(store)
        try rounds.insert([finished(.null), finished(.file(blob(1, 10)))])
        let schedule = Schedule(
            key: ScheduleKey(owner: 1000, name: "nightly"), timing: .every(60_000), setAt: Timestamp(milliseconds: 0),
            specSize: 2)
        try rounds.round { try $0.put(schedule, spec: Array("{}".utf8)) }
        let locked = #expect(throws: StoreError.self) { try StateVerification(of: directory.path) }
        #expect(locked?.code == .locked)
        store.close(isClean: true)
        let whole = try StateVerification(of: directory.path)
        #expect(whole.flaws == [])
        #expect(whole.jobs == 2 && whole.bytes > 0)
        try directory.execute(sql)
        let before = try directory.contents()
        let found = try StateVerification(of: directory.path)
        #expect(found.flaws.contains { $0.contains(words) }, "\(found.flaws)")
        #expect(try directory.contents() == before)
    }

    @Test(arguments: ["state.db", "50%25 #1?.db"])
    func verificationLeavesNothingBesideAFile(_ name: String) throws {
        try SQLiteStore(path: directory.path).close(isClean: true)
        let file = directory.path + "/" + name
        try FileManager.default.copyItem(atPath: directory.database, toPath: file)
        let before = directory.names
        let depth = FileManager.default.currentDirectoryPath.split(separator: "/").count
        let relative = String(repeating: "../", count: depth) + file.dropFirst()
        for path in [file, relative] { try expectWhole(path) }
        #expect(directory.names == before)
    }

    /// The log has rows that the database does not have yet.
    @Test func verificationReadsTheLogToo() throws {
        let store = try SQLiteStore(path: directory.path)
        try StoreUnderTest(store).insert([finished(.null)])
        let copy = try TemporaryDirectory()
        for ending in ["", "-wal"] {
            try FileManager.default.copyItem(atPath: directory.database + ending, toPath: copy.database + ending)
        }
        #expect(try StateVerification(of: copy.database).jobs == 1)
    }

    @Test func verificationMissesFiles() throws {
        let store = try SQLiteStore(path: directory.path)
        try StoreUnderTest(store).insert([finished(.file(blob(1, 10)))])
        store.close(isClean: true)
        try directory.write("short", to: "bodies/1-1")
        #expect(try StateVerification(of: directory.path).flaws.contains { $0.contains("1-1 of job 1") })
    }

    @Test func verificationIsRefused_whereThereIsNoneOrOneOfAnotherVersion() throws {
        #expect(throws: StoreError.self) { try StateVerification(of: directory.path) }
        try SQLiteStore(path: directory.path).close(isClean: true)
        try directory.execute("PRAGMA user_version = 9")
        let error = #expect(throws: StoreError.self) { try StateVerification(of: directory.path) }
        #expect(error?.code == .otherVersion)
    }
}
