import Glibc
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

    /// A limit on the size of files stands for a disk that is full.
    @Test func removalsSucceed_whenNothingElseCanBeStored() async throws {
        await #expect(processExitsWith: .success) {
            let directory = try TemporaryDirectory()
            let store = try SQLiteStore(path: directory.path)
            let rounds = StoreUnderTest(store)
            try rounds.insert([.sample()])
            signal(SIGXFSZ, SIG_IGN)
            // Below it the log's own room, which a removal takes up anew.
            var limit = rlimit(rlim_cur: 5 << 20, rlim_max: .max)
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
            var stored: JobID = 1
            var failures = 0
            // The first one has the log's room taken up anew, and only the second finds none at all.
            while failures < 2, stored < 5000 {
                let end = store.round { transaction throws(StoreError) in
                    _ = try transaction.insert(RoomTests.jobs(10, size: 5_000))
                }
                switch end {
                case .committed: (stored, failures) = (stored + 10, 0)
                case .undone(let error), .unknown(let error):
                    failures += 1
                    #expect(error.code == .write)
                }
            }
            #expect(failures == 2)
            // Piece by piece, as the core does.
            for first in stride(from: JobID(1), to: stored, by: 20) {
                try rounds.round { transaction in
                    for id in first..<min(first + 20, stored) { try transaction.delete(id) }
                }
            }
            let next = try rounds.round { try $0.create([.sample()]) }
            #expect(next.count == 1)
            store.close(isClean: true)
            limit.rlim_cur = .max
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
            #expect(try StateVerification(of: directory.path).flaws == [])
        }
    }
}
