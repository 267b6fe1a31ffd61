import CSQLite
import Foundation
import GRDB
import GRDBSQLite
import JobModel
import TestSupport
import Testing

@testable import JobStore

/// The log is written with few calls (`log.c`), which nobody else can tell but by their number.
@Suite struct GatheredLogTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test func commit_writesItsPagesWithOneCall() async throws {
        // In a process of its own, as the kernel counts the calls of a whole one.
        await #expect(processExitsWith: .success) { [path = directory.path as String] in
            let store = try SQLiteStore(path: path)
            _ = try await store.create(.example())
            let commits = 100
            let before = try callsToWrite()
            for _ in 0..<commits { _ = try await store.create(.example()) }
            let calls = try callsToWrite() - before
            await store.close()
            // Each commit has at least five pages.
            #expect((commits...2 * commits).contains(calls))
        }
    }

    @Test func transactions_areWholeForOthers_whenTheyAreLongerThanMemoryOrUndone() throws {
        DeferdVFS.register
        let path = directory.path + "/log.db"
        let writing = try DatabaseQueue(path: path)
        try writing.writeWithoutTransaction { connection in
            // With so few pages in memory most are written into the log, and read again, before the transaction ends.
            try connection.execute(
                sql: """
                    PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = 10;
                    PRAGMA wal_autocheckpoint = 0;
                    CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT); CREATE INDEX by_text ON texts (text, id);
                    """)
            let open = try #require(connection.sqliteConnection)
            #expect(deferd_gather_log(open) != 0)
        }
        let reading = try DatabaseQueue(path: path)
        func fill(_ count: Int) -> String {
            """
            WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < \(count))
            INSERT INTO texts (text) SELECT hex(randomblob(200)) FROM numbers
            """
        }
        func expect(_ count: Int) throws {
            let (found, flaws) = try reading.read { connection in
                (
                    try Int.fetchOne(connection, sql: "SELECT count(*) FROM texts"),
                    try String.fetchAll(connection, sql: "PRAGMA integrity_check")
                )
            }
            #expect(found == count)
            #expect(flaws == ["ok"])
        }
        try writing.write { try $0.execute(sql: fill(3000)) }
        try expect(3000)
        try writing.writeWithoutTransaction { connection in
            try connection.inTransaction {
                try connection.execute(sql: fill(3000))
                return .rollback
            }
        }
        try expect(3000)
        try writing.write { try $0.execute(sql: "UPDATE texts SET text = text || 'x' WHERE id % 2 = 0; " + fill(1)) }
        try expect(3001)
        try writing.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
        try writing.write { try $0.execute(sql: fill(10)) }
        try expect(3011)
        // All of it at once, when it is committed.
        try writing.write { try $0.execute(sql: "PRAGMA cache_size = -65536; " + fill(10_000)) }
        try expect(13_011)
    }

    @Test func otherDatabase_isLeftAlone() throws {
        DeferdVFS.register
        try DatabaseQueue().write { connection in
            let open = try #require(connection.sqliteConnection)
            #expect(deferd_gather_log(open) == 0)
        }
    }
}

/// How often this process has written to a file so far.
private func callsToWrite() throws -> Int {
    let counts = try String(contentsOfFile: "/proc/self/io", encoding: .utf8)
    let line = try #require(counts.split(separator: "\n").first { $0.hasPrefix("syscw: ") })
    return try #require(Int(line.dropFirst("syscw: ".count)))
}
