import Foundation
import JobModel
import Synchronization
import TestSupport
import Testing

@testable import JobStore

@Suite struct UncleanEndTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test(arguments: [1, 400, 1500])
    func store_holdsAllThatWasAnswered_whenItsProcessIsKilled(_ answers: Int) async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [path = directory.path as String, answers = answers as Int] in
            let store = try SQLiteStore(path: path)
            let answered = open(path + "/answered", O_WRONLY | O_CREAT | O_APPEND, 0o600)
            let left = Mutex(answers)
            for index in 0..<3000 {
                store.submit([try .example(#""label": "\#(index)""#)]) { result in
                    guard case .success(let submissions) = result, case .created(var id) = submissions[0] else {
                        return
                    }
                    write(answered, &id, MemoryLayout<JobID>.size)
                    let isLast = left.withLock { left in
                        left -= 1
                        return left == 0
                    }
                    if isLast { kill(getpid(), SIGKILL) }
                }
            }
            await store.close()
        }
        let answered = try Data(contentsOf: URL(fileURLWithPath: directory.path + "/answered"))
            .withUnsafeBytes { Array($0.bindMemory(to: JobID.self)) }
        #expect(answered.count >= answers)
        let store = try SQLiteStore(path: directory.path)
        for id in answered { #expect(try await store.existing(id).spec.label == "\(id - 1)") }
        let count = try await store.counts().map(\.count).reduce(0, +)
        #expect(try await store.create(.example()) == [JobID(count) + 1])
        await store.close()
    }

    @Test func store_goesOn_whenAFileCouldNotGrowForAWhile() async throws {
        await #expect(processExitsWith: .success) { [path = directory.path as String] in
            let store = try SQLiteStore(path: path)
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit(rlim_cur: 400_000, rlim_max: .max)
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
            let text = String(repeating: "x", count: 900)
            var stored = 0
            var failure: StoreError?
            while failure == nil, stored < 5000 {
                do {
                    stored += try await store.create(.example(source: #"{"type": "value", "value": "\#(text)"}"#)).count
                } catch { failure = error as? StoreError }
            }
            #expect(failure?.code == .write)
            await #expect(throws: StoreError.self) {
                try await store.submit(
                    (0..<500).map { _ in try .example(source: #"{"type": "value", "value": "\#(text)"}"#) })
            }
            limit.rlim_cur = .max
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
            #expect(try await store.create(.example()) == [JobID(stored) + 1])
            #expect(try await store.counts().map(\.count) == [stored + 1])
            await store.close()
            let again = try SQLiteStore(path: path)
            #expect(try await again.counts().map(\.count) == [stored + 1])
            await again.close()
        }
    }

    @Test func store_opens_whenItHoldsAHundredThousandJobs() async throws {
        let first = try SQLiteStore(path: directory.path)
        var job = try Job.example(#""tags": ["t"]"#)
        job.host = "localhost:80"
        _ = try await first.create(job)
        await first.close()
        // The one job again and again, in every state.
        let columns = """
            state, owner, queue, is_child, source, priority, link, attempt, children, created_at, deadline_at, host, spec
            """
        try DatabaseFile(directory.database).execute(
            """
            WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100000)
            INSERT INTO jobs (id, \(columns)) SELECT n, n % 6\(columns.dropFirst(5)) FROM numbers, jobs WHERE id = 1
            """)
        let store = try SQLiteStore(path: directory.path)
        let counts = try await store.counts()
        let ready = try await store.ready(limit: 100)
        let next = try await store.create(job)
        #expect(counts.map(\.count).reduce(0, +) == 100_000)
        #expect(counts.count == 6)
        #expect(ready.count == 100)
        #expect(next == [100_001])
        await store.close()
    }
}
