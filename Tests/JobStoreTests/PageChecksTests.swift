import Foundation
import GRDB
import JobModel
import TestSupport
import Testing

@testable import JobStore

private let sqliteShell = "/usr/bin/sqlite3"

/// What a disk or a memory changes in a database is refused, or is what was stored all the same; never something else.
@Suite struct PageChecksTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func fill() async throws -> [JobID: Job] {
        let store = try SQLiteStore(path: directory.path)
        let ids = try await store.create(.example(#""label": "a""#), .example(#""label": "b""#))
        for index in 0..<200 { _ = try await store.create(.example(#""label": "\#(index)""#)) }
        var jobs: [JobID: Job] = [:]
        for id in ids { jobs[id] = try await store.existing(id) }
        await store.close()
        return jobs
    }

    private func bytes() throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(fileURLWithPath: directory.database))) }

    private func write(_ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: directory.database))
    }

    @Test func everyPage_hasChecksum_whenDatabaseIsNew() async throws {
        _ = try await fill()
        let bytes = try bytes()
        let header = try #require(DatabaseHeader(Array(bytes.prefix(DatabaseHeader.length))))
        #expect(header.reserved == PageChecks.reserved && header.hasChecks)
        let pages = stride(from: 0, to: bytes.count, by: header.pageSize).map { bytes[$0..<$0 + header.pageSize] }
        #expect(pages.count > 10)
        // One that was never written has nothing in it at all.
        for page in pages where page.contains(where: { $0 != 0 }) { #expect(page.suffix(8).contains { $0 != 0 }) }
    }

    /// SQLite itself notices none of these.
    @Test func changedText_isRefused_whereverItStands() async throws {
        _ = try await fill()
        let whole = try bytes()
        let text = Array(#""label":"1"#.utf8)
        var found = 0
        var rest = whole[...]
        while let range = rest.firstRange(of: text), found < 5 {
            found += 1
            var changed = whole
            changed[range.upperBound - 1] ^= 1
            try write(changed)
            let error = #expect(throws: StoreError.self) { try SQLiteStore(path: directory.path) }
            #expect(error?.code == .damaged)
            #expect(try bytes() == changed)
            rest = rest[range.upperBound...]
        }
        #expect(found == 5)
        try write(whole)
        try await SQLiteStore(path: directory.path).close()
    }

    @Test func flippedBits_areRefused_orChangeNothing() async throws {
        let jobs = try await fill()
        let whole = try bytes()
        let seed = UInt64.random(in: 1 ... .max)
        var random = SeededGenerator(seed: seed)
        var refused = 0
        for _ in 0..<60 {
            var changed = whole
            // The header more often than by its share.
            let index = Int.random(in: 0..<(random.chance(0.3) ? 100 : whole.count), using: &random)
            changed[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            try write(changed)
            do {
                let store = try SQLiteStore(path: directory.path)
                for (id, job) in jobs { #expect(try await store.existing(id) == job, "seed \(seed), byte \(index)") }
                await store.close()
            } catch let error as StoreError {
                #expect(error.code == .damaged || error.code == .newer, "seed \(seed), byte \(index): \(error)")
                refused += 1
            }
            for ending in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: directory.database + ending) }
        }
        #expect(refused > 20, "seed \(seed)")
    }

    @Test func page_isRefused_whereAnotherStandsInItsPlace() async throws {
        _ = try await fill()
        var bytes = try bytes()
        let size = 4096
        for page in 0..<size { bytes.swapAt(2 * size + page, 3 * size + page) }
        try write(bytes)
        let error = #expect(throws: StoreError.self) { try SQLiteStore(path: directory.path) }
        #expect(error?.code == .damaged)
    }

    /// The disk gives back nothing of what was in it.
    @Test func pageOfZeros_isRefused_whereverItStands() async throws {
        _ = try await fill()
        let whole = try bytes()
        for page in 0..<whole.count / 4096 where whole[page * 4096..<(page + 1) * 4096].contains(where: { $0 != 0 }) {
            try write(whole[..<(page * 4096)] + Array(repeating: 0, count: 4096) + whole[((page + 1) * 4096)...])
            let error = #expect(throws: StoreError.self, "\(page)") { try SQLiteStore(path: directory.path) }
            #expect(error?.code == .damaged)
        }
    }

    /// Such a database is too long for SQLite to go through it at a start.
    @Test func changedByte_isRefused_whereOnlyTheChecksumsAreLookedAt() async throws {
        _ = try await fill()
        let whole = try bytes()
        #expect(try DatabaseInspection.finds(directory.database, checkingUpTo: whole.count / 4))
        for place in [5 * 4096 + 2000, 9 * 4096 + 4000] {
            var changed = whole
            changed[place] ^= 1
            try write(changed)
            let error = #expect(throws: StoreError.self) {
                try DatabaseInspection.finds(directory.database, checkingUpTo: whole.count / 4)
            }
            #expect(error?.code == .damaged)
            #expect(error?.message.contains("page \(place / 4096 + 1) ") == true, "\(String(describing: error))")
            // A longer one still is looked at where it is used.
            #expect(try DatabaseInspection.finds(directory.database, checkingUpTo: whole.count / 8))
        }
    }

    /// A loss of power, and a disk that said too early that it had written: the page is whole, but of another day.
    @Test func olderPage_isNoticed_whenTheLastDaemonDidNotEndInOrder() async throws {
        _ = try await fill()
        let earlier = try bytes()
        let store = try SQLiteStore(path: directory.path)
        for _ in 0..<1000 { _ = try await store.create(.example()) }
        await store.close()
        let again = try SQLiteStore(path: directory.path)
        _ = try await again.create(.example())
        let log = try Data(contentsOf: URL(fileURLWithPath: directory.log))
        await again.close()
        var mixed = try bytes()
        try log.write(to: URL(fileURLWithPath: directory.log))
        let replaced = try WriteAheadLog(directory.log, pageSize: 4096).pages
        // An inner page of a tree, which does not know of later ones below it.
        let page = try #require(
            (1..<earlier.count / 4096).first { page in
                let range = page * 4096..<(page + 1) * 4096
                return [2, 5].contains(earlier[range.lowerBound]) && earlier[range] != mixed[range]
                    && !replaced.contains(page + 1)
            })
        mixed.replaceSubrange(page * 4096..<(page + 1) * 4096, with: earlier[page * 4096..<(page + 1) * 4096])
        try write(mixed)
        let error = #expect(throws: StoreError.self) { try SQLiteStore(path: directory.path) }
        #expect(error?.code == .damaged)
        // It is nowhere to be seen in the page itself.
        #expect(error?.message.contains("not what was written") == false, "\(String(describing: error))")
    }

    /// SQLite would take the same text for another job's label.
    @Test func job_isAnError_whenItsPageChangesWhileTheStoreIsOpen() async throws {
        _ = try await fill()
        let store = try SQLiteStore(path: directory.path)
        var bytes = try bytes()
        let text = try #require(bytes.firstRange(of: Array(#""label":"150""#.utf8)))
        bytes[text.upperBound - 2] ^= 1
        let file = try #require(FileHandle(forUpdatingAtPath: directory.database))
        try file.write(contentsOf: Data(bytes))
        for _ in 0..<2 {
            let error = await #expect(throws: StoreError.self) { try await store.job(153) }
            #expect(error?.code == .damaged && error?.message.contains(directory.database) == true)
        }
        // What stands in other pages goes on.
        #expect(try await store.existing(1).spec.label == "a")
        let id = try await store.create(.example())[0]
        #expect(try await store.job(id) != nil)
        await store.close()
    }

    // MARK: Older ones

    private func copyFixture(_ version: Int) throws {
        let fixture = try #require(Bundle.module.url(forResource: "Fixtures/version-\(version)", withExtension: "db"))
        try FileManager.default.copyItem(at: fixture, to: URL(fileURLWithPath: directory.database))
    }

    private func header() throws -> DatabaseHeader { try #require(try DatabaseHeader(of: directory.database)) }

    @Test(arguments: 1...4) func olderDatabase_getsChecksums_whenItIsOpened(_ version: Int) async throws {
        try copyFixture(version)
        try await SQLiteStore(path: directory.path).close()
        #expect(try header().reserved == PageChecks.reserved && header().hasChecks)
        let store = try SQLiteStore(path: directory.path)
        #expect(try await store.existing(2).spec.queue == "slow")
        #expect(try await store.pool.read { try Schema.version(of: $0) } == Schema.version)
        await store.close()
    }

    @Test(arguments: 1...4) func olderDatabase_staysAsItIs_whenItIsTooLarge(_ version: Int) throws {
        try copyFixture(version)
        var reports = 0
        for _ in 0..<2 {
            try OlderDatabase.update(StateDirectory(directory.path), upTo: 3) { reports += 1 }
        }
        #expect(try !header().hasChecks && reports == 1)
        let queue = try DatabaseQueue(path: directory.database)
        #expect(try queue.read { try Schema.version(of: $0) } == Schema.version)
        try queue.close()
        #expect(try DatabaseInspection.finds(directory.database))
    }

    /// A daemon that was killed while it wrote the new file leaves the old one, and half a new one.
    @Test func olderDatabase_isBroughtUpToDate_whenThatWasCutShort() async throws {
        try copyFixture(4)
        try Data("half".utf8).write(to: URL(fileURLWithPath: directory.database + ".new"))
        let store = try SQLiteStore(path: directory.path)
        #expect(try await store.existing(2).spec.queue == "slow")
        await store.close()
        #expect(try header().hasChecks)
        #expect(!FileManager.default.fileExists(atPath: directory.database + ".new"))
    }

    @Test func olderDatabase_isUsedAsItIs_whenItCannotBeWrittenAnew() async throws {
        try copyFixture(4)
        try FileManager.default.createDirectory(
            atPath: directory.database + ".new", withIntermediateDirectories: false)
        let store = try SQLiteStore(path: directory.path)
        #expect(try await store.existing(2).spec.queue == "slow")
        await store.close()
        #expect(try !header().hasChecks)
    }

    @Test func olderDatabase_isBroughtUpToDate_whenItsJobsAreInTheLog() async throws {
        let source = try TemporaryDirectory()
        let fixture = try #require(Bundle.module.url(forResource: "Fixtures/version-4", withExtension: "db"))
        try FileManager.default.copyItem(at: fixture, to: URL(fileURLWithPath: source.database))
        let queue = try DatabaseQueue(path: source.database)
        try await queue.writeWithoutTransaction {
            try $0.execute(sql: "PRAGMA journal_mode = WAL; UPDATE jobs SET crashes = 2 WHERE id = 2")
        }
        try FileManager.default.copyItem(atPath: source.database, toPath: directory.database)
        try FileManager.default.copyItem(atPath: source.log, toPath: directory.log)
        try queue.close()
        let store = try SQLiteStore(path: directory.path)
        #expect(try await store.existing(2).crashes == 2)
        await store.close()
        #expect(try header().hasChecks)
    }

    // MARK: Other programs

    private func shell(_ path: String, _ command: String) throws {
        #expect(try SystemProgram([sqliteShell, path, command]).status == 0)
    }

    @Test(
        .enabled(if: FileManager.default.isExecutableFile(atPath: sqliteShell), "There is no sqlite3."),
        arguments: [".backup", "VACUUM INTO"])
    func copyThatSQLiteMade_isRight(_ command: String) async throws {
        let jobs = try await fill()
        let copy = try TemporaryDirectory()
        let store = try SQLiteStore(path: directory.path)
        let id = try await store.create(.example())[0]
        try shell(directory.database, "\(command) '\(copy.database)'")
        await store.close()
        let restored = try SQLiteStore(path: copy.path)
        for (id, job) in jobs { #expect(try await restored.existing(id) == job) }
        #expect(try await restored.job(id) != nil)
        await restored.close()
    }

    /// Looking into what a killed daemon left writes its log into the database.
    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: sqliteShell), "There is no sqlite3."))
    func logThatSQLiteTookUp_isRight() async throws {
        let source = try TemporaryDirectory()
        let store = try SQLiteStore(path: source.path)
        let ids = try await store.create(.example(), .example())
        try FileManager.default.copyItem(atPath: source.database, toPath: directory.database)
        try FileManager.default.copyItem(atPath: source.log, toPath: directory.log)
        await store.close()
        try shell(directory.database, "SELECT count(*) FROM jobs; PRAGMA wal_checkpoint(TRUNCATE)")
        let again = try SQLiteStore(path: directory.path)
        #expect(try await again.existing(ids[1]).state == .queued)
        await again.close()
    }
}
