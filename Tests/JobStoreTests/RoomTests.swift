import Foundation
import JobModel
import TestSupport
import Testing

@testable import JobStore

/// Room on the disk.
@Suite struct RoomTests {
    private static func jobs(_ count: Int, size: Int) -> [NewJobRow] {
        (0..<count).map { _ in
            NewJobRow(row: .sample(), document: .spec([UInt8](repeating: 32, count: size)))
        }
    }

    @Test(.timeLimit(.minutes(5))) func freePagesAreGivenBack() async throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(path: directory.path)
        let rounds = StoreUnderTest(store)
        try rounds.round { _ = try $0.insert(Self.jobs(300, size: 100_000)) }
        try rounds.round { transaction in for id in 1..<300 { try transaction.delete(JobID(id)) } }
        // It goes on by itself, beside rounds and without them.
        while StateDirectory.size(directory.database) > 10 << 20 { try await Task.sleep(for: .milliseconds(5)) }
        #expect(try rounds.round { try $0.document(of: 300) } == .spec([UInt8](repeating: 32, count: 100_000)))
        store.close(isClean: true)
        #expect(try StateVerification(of: directory.path).flaws == [])
    }

    @Test func rounds_shareTheLog_afterOneFoundNoRoom() throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(path: directory.path)
        let rounds = StoreUnderTest(store, directory)
        let ids = try rounds.insert((0..<30).map { _ in .sample() })
        let pages = try store.connection.number("PRAGMA page_count")
        _ = try store.connection.number("PRAGMA max_page_count = \(pages)")
        let end = store.round { transaction throws(StoreError) in
            _ = try transaction.insert(Self.jobs(10, size: 100_000))
        }
        guard case .undone(let error) = end, error.isLackOfRoom else { throw StoreError(.write, "\(end)") }
        try rounds.round { try $0.delete(ids[0]) }
        // It counts how often the log began again.
        func header() -> Data? { FileManager.default.contents(atPath: directory.database + "-wal")?.prefix(32) }
        let before = header()
        for id in ids.dropFirst() { try rounds.round { try $0.delete(id) } }
        #expect(header() == before)
    }

    @Test func aRoundMakesTheDatabaseLonger_inWholeSteps() throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(path: directory.path)
        let before = StateDirectory.size(directory.database)
        try StoreUnderTest(store).round { _ = try $0.insert(Self.jobs(5, size: 100_000)) }
        let after = StateDirectory.size(directory.database)
        #expect(after > before && after.isMultiple(of: 256 << 10))
    }
}
