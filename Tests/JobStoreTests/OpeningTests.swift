import Foundation
import GRDB
import Glibc
import JobModel
import TestSupport
import Testing

@testable import JobStore

@Suite struct OpeningTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Leaves a closed database with a few jobs in the directory.
    private func fill(_ count: Int = 200) async throws {
        let store = try SQLiteStore(path: directory.path)
        _ = try await store.submit((0..<count).map { try .example(#""label": "\#($0)""#) })
        await store.close()
    }

    /// Leaves what a daemon that was killed does: a database whose jobs are all in the log, each in a transaction.
    private func fillLog(_ count: Int = 10) async throws {
        let source = try TemporaryDirectory()
        let store = try SQLiteStore(path: source.path)
        for index in 0..<count { _ = try await store.create(.example(#""label": "\#(index)""#)) }
        try FileManager.default.copyItem(atPath: source.database, toPath: directory.database)
        try FileManager.default.copyItem(atPath: source.log, toPath: directory.log)
        await store.close()
    }

    private func change(_ path: String, _ body: (inout Data) -> Void) throws {
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        body(&bytes)
        try bytes.write(to: URL(fileURLWithPath: path))
    }

    private func expectDamaged(_ sourceLocation: SourceLocation = #_sourceLocation) throws {
        for start in ["first", "second"] {
            let before = try directory.contents()
            let error = #expect(throws: StoreError.self, "\(start)", sourceLocation: sourceLocation) {
                try SQLiteStore(path: directory.path)
            }
            #expect(error?.code == .damaged, "\(String(describing: error))", sourceLocation: sourceLocation)
            #expect(error?.message.contains(directory.database) == true, sourceLocation: sourceLocation)
            #expect(try directory.contents() == before, sourceLocation: sourceLocation)
        }
    }

    // MARK: A new one

    @Test func open_makesDirectoryAndFilesForTheOwnerOnly() async throws {
        let path = directory.path + "/a/b"
        let store = try SQLiteStore(path: path)
        _ = try await store.create(.example())
        func mode(_ path: String) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        }
        #expect(try mode(directory.path + "/a") == 0o700)
        #expect(try mode(path) == 0o700)
        for name in try FileManager.default.contentsOfDirectory(atPath: path) {
            #expect(try mode(path + "/" + name) == 0o600, "\(name)")
        }
        await store.close()
        #expect(
            try Set(FileManager.default.contentsOfDirectory(atPath: path)).isSuperset(of: ["deferd.db", "deferd.lock"]))
    }

    @Test func open_beginsAgain_whenMakingTheDatabaseWasCutShort() async throws {
        try Data("half".utf8).write(to: URL(fileURLWithPath: directory.database + ".new"))
        let store = try SQLiteStore(path: directory.path)
        #expect(try await store.create(.example()) == [1])
        #expect(!FileManager.default.fileExists(atPath: directory.database + ".new"))
        await store.close()
    }

    @Test(arguments: ["/proc/deferd", "/dev/null", "/dev/null/deferd"])
    func open_saysWhatIsWrong_whenThePathCannotBeUsed(_ path: String) throws {
        let error = #expect(throws: StoreError.self) { try SQLiteStore(path: path) }
        #expect(error?.code == .write)
        #expect(error?.message.contains(path) == true, "\(String(describing: error))")
    }

    @Test func open_saysWhatIsWrong_whenADirectoryStandsInPlaceOfTheDatabase() throws {
        try FileManager.default.createDirectory(atPath: directory.database, withIntermediateDirectories: false)
        let error = #expect(throws: StoreError.self) { try SQLiteStore(path: directory.path) }
        #expect(error?.code == .read)
        #expect(error?.message.contains(directory.database) == true, "\(String(describing: error))")
    }

    // MARK: The lock

    @Test func open_isRefused_whenAnotherHasTheDirectory() async throws {
        let store = try SQLiteStore(path: directory.path)
        let id = try await store.create(.example())[0]
        for _ in 0..<2 {
            let error = #expect(throws: StoreError.self) { try SQLiteStore(path: directory.path) }
            #expect(error?.code == .locked)
            #expect(error?.message.contains(directory.path) == true)
        }
        #expect(try await store.create(.example()) == [id + 1])
        #expect(try await store.job(id) != nil)
        await store.close()
        let again = try SQLiteStore(path: directory.path)
        #expect(try await again.job(id + 1) != nil)
        await again.close()
    }

    // MARK: Damage

    @Test func open_isRefused_whenTheDatabaseIsEmpty() async throws {
        try await fill()
        try change(directory.database) { $0 = Data() }
        try expectDamaged()
    }

    @Test func open_isRefused_whenTheDatabaseIsGarbage() async throws {
        try Data((0..<20_000).map { _ in UInt8.random(in: 0...255) }).write(
            to: URL(fileURLWithPath: directory.database))
        try expectDamaged()
    }

    @Test(arguments: [50, 100, 4096, 5000, 40_960])
    func open_isRefused_whenTheDatabaseIsCutShort(_ length: Int) async throws {
        try await fill()
        try change(directory.database) { $0 = $0.prefix(length) }
        try expectDamaged()
    }

    @Test(arguments: [0, 68, 100])
    func open_isRefused_whenTheFirstPageIsOverwritten(_ offset: Int) async throws {
        try await fill()
        try change(directory.database) { bytes in
            for place in offset..<offset + 64 { bytes[place] = 0xA5 }
        }
        try expectDamaged()
    }

    @Test func open_isRefused_whenOnlyTheLogIsLeft() async throws {
        try await fillLog()
        try FileManager.default.removeItem(atPath: directory.database)
        try expectDamaged()
    }

    @Test func open_isRefused_whenTheDatabaseIsOfAnotherProgram() async throws {
        let queue = try DatabaseFile(directory.database)
        try queue.execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY)")
        try expectDamaged()
    }

    // MARK: Other versions

    private func expectOtherVersion(_ sign: String) throws {
        let before = try directory.contents()
        let error = #expect(throws: StoreError.self) { try SQLiteStore(path: directory.path) }
        #expect(error?.code == .otherVersion && error?.isLasting == true)
        #expect(error?.message.contains(directory.database) == true)
        #expect(error?.message.contains(sign) == true, "\(String(describing: error))")
        #expect(try directory.contents() == before)
    }

    /// The last two are what deferd wrote before its first release.
    @Test(arguments: [2, 8, 1008]) func open_isRefused_whenTheDatabaseHasAnotherVersion(_ version: Int) async throws {
        try await fill()
        try DatabaseFile(directory.database).execute("PRAGMA user_version = \(version)")
        try expectOtherVersion("version \(version)")
    }

    /// The first of these is such as one of version 1 from before the first release.
    @Test(arguments: [
        ("ALTER TABLE jobs DROP COLUMN gated_since", "CREATE TABLE jobs"), ("DROP TABLE notes", "CREATE TABLE notes"),
        ("DROP INDEX jobs_due", "CREATE INDEX jobs_due"),
    ])
    func open_isRefused_whenATableIsAnother(_ change: String, _ sign: String) async throws {
        try await fill()
        let before = "ALTER TABLE jobs ADD COLUMN gated_since INTEGER; ALTER TABLE jobs ADD COLUMN more INTEGER; "
        try DatabaseFile(directory.database).execute((change.contains("gated_since") ? before : "") + change)
        try expectOtherVersion(sign)
    }

    // MARK: Unclean ends

    @Test func open_takesUpTheLog_whenTheLastDaemonWasKilled() async throws {
        try await fillLog(10)
        let store = try SQLiteStore(path: directory.path)
        #expect(try await store.counts().map(\.count) == [10])
        #expect(try await store.create(.example()) == [11])
        await store.close()
    }

    @Test(arguments: [1, 3000, 4120])
    func open_leavesOutTheLastTransaction_whenItsEndIsMissing(_ missing: Int) async throws {
        try await fillLog(10)
        try change(directory.log) { $0.removeLast(missing) }
        let store = try SQLiteStore(path: directory.path)
        #expect(try await store.counts().map(\.count) == [9])
        await store.close()
    }

    @Test func open_leavesOutTheLastTransaction_whenItIsWrong() async throws {
        try await fillLog(10)
        try change(directory.log) { $0[$0.count - 10] ^= 1 }
        let store = try SQLiteStore(path: directory.path)
        #expect(try await store.counts().map(\.count) == [9])
        await store.close()
    }

    @Test(arguments: [0, 31, 32])
    func open_holdsTheDatabaseAlone_whenTheLogWasJustBegun(_ length: Int) async throws {
        try await fill(5)
        try Data(count: length).write(to: URL(fileURLWithPath: directory.log))
        let store = try SQLiteStore(path: directory.path)
        #expect(try await store.counts().map(\.count) == [5])
        await store.close()
    }

    // MARK: The check

    private func check(_ store: SQLiteStore) async -> [String] {
        await withCheckedContinuation { continuation in store.check { continuation.resume(returning: $0) } }
    }

    @Test func store_wasLeftOpen_onlyWhenTheLastDaemonWasKilled() async throws {
        try await fillLog(10)
        for wasLeftOpen in [true, false] {
            let store = try SQLiteStore(path: directory.path)
            #expect(store.wasLeftOpen == wasLeftOpen)
            #expect(await check(store) == [])
            await store.close()
        }
    }

    @Test func check_saysWhatIsWrong() async throws {
        try await fill()
        let store = try SQLiteStore(path: directory.path)
        let page = try await store.pool.read { connection in
            try UInt64.fetchOne(connection, sql: "SELECT rootpage FROM sqlite_schema WHERE name = 'notes'")
        }
        let file = try #require(FileHandle(forUpdatingAtPath: directory.database))
        try file.seek(toOffset: (#require(page) - 1) * 4096)
        try file.write(contentsOf: Data(repeating: 0xA5, count: 4096))
        #expect(await !check(store).isEmpty)
        await store.close()
    }

    @Test func directory_canBeOpenedAgain_whenAProgramBeingStartedHasItsLockFile() async throws {
        let store = try SQLiteStore(path: directory.path)
        let path = directory.path + "/deferd.lock"
        // What a child has between fork(2) and exec(2).
        let lock = try #require(
            FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { Int32($0) }.first {
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path
            })
        let inherited = dup(lock)
        defer { Glibc.close(inherited) }
        await store.close()
        let again = try SQLiteStore(path: directory.path)
        await again.close()
    }
}
