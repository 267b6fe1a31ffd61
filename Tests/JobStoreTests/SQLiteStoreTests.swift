import Glibc
import JobModel
import Synchronization
import TestSupport
import Testing

@testable import JobStore

/// What only the store on the disk does.
@Suite struct SQLiteStoreTests {
    @Test func goesOnAfterARestart() throws {
        let directory = try TemporaryDirectory()
        var numbers: [Int64] = []
        do {
            let store = try SQLiteStore(path: directory.path)
            #expect(store.life == 1)
            #expect(store.isAfterCleanStop)
            #expect(try store.steadyAnchor(boot: "a", fresh: -77) == -77)
            let rounds = StoreUnderTest(store)
            numbers.append(try rounds.round { try $0.nextNumber() })
            try rounds.insert([.full, .sample()])
            try rounds.round { try $0.delete(2) }
            store.close(isClean: true)
            guard case .undone(let error) = store.round({ _ in }) else {
                Issue.record("A closed store carries out rounds.")
                return
            }
            #expect(error.code == .closed)
        }
        do {
            let store = try SQLiteStore(path: directory.path)
            #expect(store.life == 2)
            #expect(store.isAfterCleanStop)
            #expect(try store.steadyAnchor(boot: "a", fresh: 5) == -77 && !store.isAfterBoot)
            #expect(try store.steadyAnchor(boot: "b", fresh: -78) == -77 && store.isAfterBoot)
            #expect(try store.steadyAnchor(boot: "c", fresh: 5) == 5)
            let rounds = StoreUnderTest(store)
            #expect(try rounds.insert([.sample()]) == [3])
            numbers.append(try rounds.round { try $0.nextNumber() })
            #expect(try rounds.round { try $0.job(1) } == JobRow.full.with { $0.id = 1 })
        }
        // That one was not closed.
        let store = try SQLiteStore(path: directory.path)
        #expect(store.life == 3)
        #expect(!store.isAfterCleanStop)
        #expect(numbers == [1, 2])
    }

    @Test func locksItsDirectory() throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(path: directory.path)
        let error = #expect(throws: StoreError.self) { try SQLiteStore(path: directory.path) }
        #expect(error?.code == .locked)
        withExtendedLifetime(store) {}
    }

    /// The size of a file, 2^63 - 1, would overflow the job's.
    private static let hugeFile = "carried = x'01020AFEFFFFFFFFFFFFFFFF01'"

    @Test(
        arguments: ["life = x'01'", "submitted = x'0102'", "carried = x'07'", "owner = -1", "waiting = 77", hugeFile])
    func passesOverADamagedRowAndReportsItOnce(_ damage: String) throws {
        let directory = try TemporaryDirectory()
        let reports = Mutex<[String]>([])
        let store = try SQLiteStore(path: directory.path) { error in
            reports.withLock { $0.append(error.message) }
        }
        let rounds = StoreUnderTest(store)
        let row = JobRow.sample(state: .succeeded).with {
            ($0.finishedAt, $0.carried) = (Timestamp(milliseconds: 1), .success(.null))
        }
        let ids = try rounds.insert([row, row, row])
        try SQLiteConnection(directory.path + "/deferd.db", errors: .write)
            .execute("UPDATE jobs SET \(damage) WHERE id = \(ids[1])")
        try rounds.round { transaction throws in
            #expect(try transaction.job(ids[1]) == nil)
            let found = try transaction.finished(owner: nil, before: Timestamp(milliseconds: 5), limit: 2)
            #expect(found.map(\.id) == [ids[0], ids[2]])
        }
        #expect(try store.reader.job(ids[1]) == nil)
        #expect(try store.reader.page(JobFilter()).jobs.map(\.row.id) == [ids[2], ids[0]])
        #expect(reports.withLock { $0.count } == 1)
    }

    @Test func usesItsLogAnew() throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(path: directory.path)
        let rounds = StoreUnderTest(store)
        let text = [UInt8](repeating: 32, count: 1 << 20)
        // Several times what the log may hold before rounds wait for it to be written.
        for _ in 0..<30 {
            try rounds.round { transaction in
                _ = try transaction.insert((0..<4).map { _ in NewJobRow(row: .sample(), document: .spec(text)) })
            }
        }
        let log = try #require(try? FileSize.of(directory.path + "/deferd.db-wal"))
        #expect(log < 80 << 20)
    }
}

private enum FileSize {
    static func of(_ path: String) throws -> Int {
        var status = stat()
        guard stat(path, &status) == 0 else { throw SystemCallError(errno) }
        return Int(status.st_size)
    }
}
