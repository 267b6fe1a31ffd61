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

    @Test func aRoundMakesTheDatabaseLonger_inWholeSteps() throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(path: directory.path)
        let before = StateDirectory.size(directory.database)
        try StoreUnderTest(store).round { _ = try $0.insert(Self.jobs(5, size: 100_000)) }
        let after = StateDirectory.size(directory.database)
        #expect(after > before && after.isMultiple(of: 256 << 10))
    }
}
