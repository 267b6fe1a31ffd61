import Foundation
import JobClient
import JobModel
import Synchronization
import TestOrigin
import TestSupport

/// One run: a daemon, an origin, clients, and the kills.
final class CrashRun: Sendable {
    /// The expected outcome of an acknowledged job.
    struct Expectation: Sendable {
        let id: Int64
        /// The result, or nil for a download.
        let result: JSON?
    }

    private static let clients = 4
    private static let inFlight = 16

    private let rounds: Int
    private let directory: URL
    private let file: [UInt8]
    private let answered = Mutex<[Expectation]>([])
    private let random: Mutex<SeededGenerator>
    private let submitted = Atomic<Int>(0)

    init(rounds: Int, seed: UInt64, directory: URL) {
        self.rounds = rounds
        self.directory = directory
        var generator = SeededGenerator(seed: seed)
        file = (0..<(3 << 19)).map { _ in UInt8.random(in: 0...255, using: &generator) }
        random = Mutex(generator)
    }

    func run() async throws -> CrashReport {
        try await TestOrigin.run { origin in
            origin["/file"] = OriginResource(self.file, etag: "\"1\"")
            origin["/json"] = .json("{\"a\": [1, 2, {\"b\": \"c\"}]}")
            for round in 1...self.rounds {
                try await self.kill(origin)
                if round.isMultiple(of: 20) {
                    print("crash: round \(round), \(self.answered.withLock(\.count)) answered")
                }
            }
            return try await self.verify()
        }
    }

    // MARK: - Killing

    private func kill(_ origin: TestOrigin) async throws {
        let daemon = try CrashDaemon(directory: directory)
        // After a time the kill may come before the first answer, as it does on a slow machine; after a number of
        // answers there are some on any.
        let (pause, count) = random.withLock { random in
            (
                Int.random(in: 5...180, using: &random),
                Bool.random(using: &random) ? Int.random(in: 1...300, using: &random) : nil
            )
        }
        let (answers, answer) = AsyncStream.makeStream(of: Void.self)
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                await withTaskGroup(of: Void.self) { clients in
                    for client in 0..<Self.clients {
                        clients.addTask { await self.submit(origin, client, daemon.socket) { answer.yield() } }
                    }
                }
                // The daemon is gone.
                answer.finish()
            }
            if let count {
                _ = await answers.prefix(count).reduce(0) { count, _ in count + 1 }
            } else {
                try? await Task.sleep(for: .milliseconds(pause))
            }
            daemon.kill()
        }
    }

    /// Submits as fast as answers come, until the daemon is gone.
    private func submit(
        _ origin: TestOrigin, _ client: Int, _ socket: String, _ answered: @escaping @Sendable () -> Void
    ) async {
        guard let connection = try? await JobClient.connect(path: socket) else { return }
        await withTaskGroup(of: Void.self) { tasks in
            for _ in 0..<Self.inFlight {
                tasks.addTask {
                    while true {
                        let number = self.submitted.add(1, ordering: .relaxed).newValue
                        let (spec, result) = self.spec(number, origin)
                        guard let answer = try? await connection.submit(spec) else { return }
                        self.answered.withLock { $0.append(Expectation(id: answer.id, result: result)) }
                        answered()
                    }
                }
            }
        }
        await connection.close()
    }

    private func spec(_ number: Int, _ origin: TestOrigin) -> (JSON, JSON?) {
        let value = JSON(number)
        switch number % 200 {
        case 0:
            return (
                [
                    "source": [
                        "type": "download", "url": .string(origin.url("/file")), "path": .string("f\(number)"),
                        "rate": 4_000_000,
                    ]
                ], nil
            )
        case 1...20:
            return (
                [
                    "source": ["type": "value", "value": value],
                    "then": [
                        ["then": ["return": ["a": "{{input}}"]]],
                        ["then": ["throw": ["kind": "odd", "message": "{{input/a}}"]]],
                        ["fail": ["return": "{{error/message}}"], "on": ["odd"]],
                        ["finally": ["source": ["type": "value", "value": "{{job/id}}"]]],
                    ],
                ], .string(String(number))
            )
        case 21...25:
            return (
                [
                    "source": [
                        "type": "each", "in": [1, 2, 3], "mode": "all",
                        "job": ["source": ["type": "value", "value": ["{{item}}", value]]],
                    ]
                ], [[1, value], [2, value], [3, value]]
            )
        case 26...30:
            return (["source": ["type": "json", "url": .string(origin.url("/json")), "select": "/a/2/b"]], "c")
        default: return (["source": ["type": "value", "value": value], "key": .string("k\(number)")], value)
        }
    }

    // MARK: - Counting

    private func verify() async throws -> CrashReport {
        var report = CrashReport()
        report.rounds = rounds
        let expected = answered.withLock(\.self)
        report.acknowledged = expected.count
        let daemon = try CrashDaemon(directory: directory)
        let client = try await JobClient.connect(path: daemon.socket)
        var seen: Set<Int64> = []
        for expectation in expected where !seen.insert(expectation.id).inserted {
            report.problems.append("job \(expectation.id) was answered twice")
        }
        for start in stride(from: 0, to: expected.count, by: 500) {
            let part = expected[start..<min(start + 500, expected.count)]
            do {
                let jobs = try await client.wait(part.map(\.id), timeout: 120)
                for (expectation, job) in zip(part, jobs) {
                    try await check(expectation, job, client, &report)
                }
            } catch {
                for expectation in part {
                    do {
                        let job = try await client.wait(expectation.id, timeout: 30)
                        try await check(expectation, job, client, &report)
                    } catch {
                        report.problems.append("job \(expectation.id): \(error)")
                    }
                }
            }
        }
        report.unanswered = try await countAll(client) - expected.count
        await client.close()
        daemon.terminate()
        checkDirectory(&report)
        return report
    }

    /// Checks a finished job. A job that ran in three consecutive kills has failed, as has the list of such a child, and succeeds
    /// when it is retried.
    private func check(
        _ expectation: Expectation, _ job: JobSnapshot, _ client: JobClient, _ report: inout CrashReport
    ) async throws {
        guard wasInterrupted(job) else { return check(expectation, job.json, &report) }
        report.interrupted += 1
        _ = try await client.change(expectation.id, .retry())
        check(expectation, try await client.wait(expectation.id, timeout: 60).json, &report)
    }

    private func check(_ expectation: Expectation, _ job: JSON, _ report: inout CrashReport) {
        guard job["state"] == "succeeded" else {
            report.problems.append("job \(expectation.id) ended so: \(job)")
            return
        }
        if let result = expectation.result {
            guard job["result"] == result else {
                report.problems.append("job \(expectation.id) has the result \(job["result"] ?? .null), not \(result)")
                return
            }
        } else {
            report.downloads += 1
            let path = job["result"]?["path"]?.string ?? ""
            guard let data = FileManager.default.contents(atPath: path), data.elementsEqual(file) else {
                report.problems.append("job \(expectation.id): the file \(path) is not what the origin has")
                return
            }
        }
        report.recovered += 1
    }

    private func wasInterrupted(_ job: JobSnapshot) -> Bool {
        let error = job.json["error"]
        return error?["kind"] == "interrupted" || error?["cause"]?["kind"] == "interrupted"
    }

    /// Counts all jobs. Failed jobs whose submission was never answered are retried too, because their partial files
    /// are kept for a retry.
    private func countAll(_ client: JobClient) async throws -> Int {
        var count = 0
        var after: Int64?
        repeat {
            let page = try await client.list(after: after, limit: 1000)
            count += page.jobs.count
            for job in page.jobs where job.json["parent"] == nil && wasInterrupted(job) {
                _ = try await client.change(job.id, .retry())
                _ = try await client.wait(job.id, timeout: 60)
            }
            after = page.next
        } while after != nil
        return count
    }

    private func checkDirectory(_ report: inout CrashReport) {
        let downloads = directory.appending(path: "downloads")
        let paths = FileManager.default.enumerator(atPath: downloads.path)?.compactMap { $0 as? String } ?? []
        for path in paths where path.hasSuffix(".part") {
            report.problems.append("\(path) is left over")
        }
    }
}
