import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

@testable import JobStore

/// What a start finds in its directory.
@Suite struct OpeningTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Leaves a closed database with a few jobs in the directory.
    private func fill(_ count: Int = 200) throws {
        let store = try SQLiteStore(path: directory.path)
        try StoreUnderTest(store).insert((0..<count).map { .sample(tags: ["t\($0)"]) })
        store.close(isClean: true)
    }

    /// Leaves what a daemon that was killed does: a database whose jobs are all in the log, each in a round.
    private func fillLog(_ count: Int = 10) throws {
        let source = try TemporaryDirectory()
        let store = try SQLiteStore(path: source.path)
        for _ in 0..<count { try StoreUnderTest(store).insert([.sample()]) }
        for name in ["deferd.db", "deferd.db-wal"] {
            try FileManager.default.copyItem(atPath: source.path + "/" + name, toPath: directory.path + "/" + name)
        }
        store.close(isClean: true)
    }

    private func change(_ path: String, _ body: (inout Data) -> Void) throws {
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        body(&bytes)
        try bytes.write(to: URL(fileURLWithPath: path))
    }

    /// How many jobs a start finds.
    private func jobs(_ store: SQLiteStore) throws -> Int {
        var filter = JobFilter()
        filter.limit = 1000
        return try store.reader.page(filter).jobs.count
    }

    /// Expects that the directory cannot be opened, twice, and stays as it is.
    private func expectRefusal(
        _ code: StoreError.Code, _ words: String? = nil, at location: SourceLocation = #_sourceLocation
    ) throws {
        for _ in 0..<2 {
            let before = try directory.contents()
            let error = #expect(throws: StoreError.self, sourceLocation: location) {
                try SQLiteStore(path: directory.path)
            }
            let message = error?.message ?? ""
            #expect(error?.code == code, "\(message)", sourceLocation: location)
            #expect(message.contains(words ?? directory.database), "\(message)", sourceLocation: location)
            #expect(try directory.contents() == before, sourceLocation: location)
        }
    }

    @Test func makesDirectoryAndFilesForTheOwnerOnly() throws {
        let path = directory.path + "/a/b"
        let store = try SQLiteStore(path: path)
        try StoreUnderTest(store).insert([.sample()])
        func mode(_ path: String) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        }
        #expect(try mode(directory.path + "/a") == 0o700)
        #expect(try mode(path) == 0o700)
        for name in try FileManager.default.contentsOfDirectory(atPath: path) {
            #expect(try mode(path + "/" + name) == 0o600, "\(name)")
        }
        store.close(isClean: true)
    }

    @Test func beginsAgain_whenMakingTheDatabaseWasCutShort() throws {
        try directory.write("half", to: "deferd.db.new")
        let store = try SQLiteStore(path: directory.path)
        #expect(try StoreUnderTest(store).insert([.sample()]) == [1])
        #expect(!directory.names.contains("deferd.db.new"))
    }

    @Test(arguments: ["/proc/deferd", "/dev/null", "/dev/null/deferd"])
    func saysWhatIsWrong_whenThePathCannotBeUsed(_ path: String) throws {
        let error = #expect(throws: StoreError.self) { try SQLiteStore(path: path) }
        #expect(error?.code == .write)
        #expect(error?.message.contains(path) == true, "\(String(describing: error))")
    }

    @Test func isRefused_whenADirectoryStandsInPlaceOfTheDatabase() throws {
        try FileManager.default.createDirectory(atPath: directory.database, withIntermediateDirectories: false)
        let error = #expect(throws: StoreError.self) { try SQLiteStore(path: directory.path) }
        #expect(error?.code == .write && error?.message.contains(directory.database) == true)
    }

    @Test func canBeOpenedAgain_whenAProgramBeingStartedHasItsLockFile() throws {
        let store = try SQLiteStore(path: directory.path)
        let path = directory.path + "/deferd.lock"
        // What a child has between fork(2) and exec(2).
        let lock = try #require(
            FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { Int32($0) }.first {
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path
            })
        let inherited = dup(lock)
        defer { Glibc.close(inherited) }
        store.close(isClean: true)
        try SQLiteStore(path: directory.path).close(isClean: true)
    }

    // MARK: Damage and other versions

    private static let damages: [@Sendable (inout Data) -> Void] = [
        { $0 = Data() }, { $0 = Data(String(repeating: "garbage ", count: 5_000).utf8) },
        // In the header, in the first page, and in others.
        { $0 = $0.prefix(50) }, { $0 = $0.prefix(4096) }, { $0 = $0.prefix(40_960) },
        { $0.replaceSubrange(0..<64, with: Data(repeating: 0xA5, count: 64)) },
        { $0.replaceSubrange(100..<164, with: Data(repeating: 0xA5, count: 64)) },
    ]

    @Test(arguments: damages.indices) func isRefused_whenTheDatabaseIsDamaged(_ damage: Int) throws {
        try fill()
        try change(directory.database, Self.damages[damage])
        try expectRefusal(.damaged)
    }

    @Test func isRefused_whenOnlyTheLogIsLeft() throws {
        try fillLog()
        try FileManager.default.removeItem(atPath: directory.database)
        try expectRefusal(.damaged)
    }

    /// Version 1 is that of the store before this one.
    @Test(arguments: [1, 9, 1009]) func isRefused_whenTheDatabaseHasAnotherVersion(_ version: Int) throws {
        try fill()
        try directory.execute("PRAGMA user_version = \(version)")
        try expectRefusal(.otherVersion, "version \(version)")
    }

    @Test func isRefused_whenTheDatabaseIsOfAnotherProgram() throws {
        try fill()
        try directory.execute("PRAGMA application_id = 5")
        try expectRefusal(.damaged)
    }

    // MARK: Ends

    @Test func takesUpTheLog_whenTheLastDaemonWasKilled() throws {
        try fillLog(10)
        do {
            let store = try SQLiteStore(path: directory.path)
            #expect(store.wasLeftOpen)
            #expect(try jobs(store) == 10)
            #expect(try StoreUnderTest(store).insert([.sample()]) == [11])
            store.close(isClean: true)
        }
        let again = try SQLiteStore(path: directory.path)
        #expect(!again.wasLeftOpen && again.isAfterCleanStop)
    }

    @Test func tellsAStopThatWasNotClean() throws {
        try SQLiteStore(path: directory.path).close(isClean: false)
        let store = try SQLiteStore(path: directory.path)
        #expect(store.wasLeftOpen && !store.isAfterCleanStop)
    }

    @Test(arguments: [1, 3000, 4120]) func leavesOutTheLastRound_whenItsEndIsMissing(_ missing: Int) throws {
        try fillLog(10)
        try change(directory.log) { $0.removeLast(missing) }
        #expect(try jobs(SQLiteStore(path: directory.path)) == 9)
    }

    @Test func leavesOutTheLastRound_whenItIsWrong() throws {
        try fillLog(10)
        try change(directory.log) { $0[$0.count - 10] ^= 1 }
        #expect(try jobs(SQLiteStore(path: directory.path)) == 9)
    }

    @Test(arguments: [0, 31, 32]) func opens_whenTheLogWasJustBegun(_ length: Int) throws {
        try fill(5)
        try Data(count: length).write(to: URL(fileURLWithPath: directory.log))
        #expect(try jobs(SQLiteStore(path: directory.path)) == 5)
    }

    // MARK: The check

    @Test func check_saysWhatIsWrong() async throws {
        try fill()
        let store = try SQLiteStore(path: directory.path)
        func check() async -> [String] {
            await withCheckedContinuation { continuation in
                store.reader.check { continuation.resume(returning: $0) }
            }
        }
        #expect(await check() == [])
        let page = try SQLiteConnection(directory.database, errors: .read).number(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'tags'")
        let file = try #require(FileHandle(forUpdatingAtPath: directory.database))
        try file.seek(toOffset: UInt64(page - 1) * 4096)
        try file.write(contentsOf: Data(repeating: 0xA5, count: 4096))
        #expect(await !check().isEmpty)
        store.close(isClean: true)
        store.reader.check { _ in Issue.record("A closed store is checked.") }
    }
}

extension TemporaryDirectory {
    var database: String { path + "/deferd.db" }
    var log: String { database + "-wal" }

    /// The bytes of every file in it but the lock.
    func contents() throws -> [String: Data] {
        var contents: [String: Data] = [:]
        for name in names where name.hasPrefix("deferd.") && name != "deferd.lock" {
            contents[name] = try Data(contentsOf: URL(fileURLWithPath: path + "/" + name))
        }
        return contents
    }

    /// Changes the database behind the store's back.
    func execute(_ sql: String) throws {
        let connection = try SQLiteConnection(database, errors: .write)
        try connection.execute(sql)
        try connection.checkpoint(3)
    }
}
