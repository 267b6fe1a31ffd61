import DataSources
import Foundation
import JobModel
import Logging
import NIOPosix
import JobCore
import JobEngine
import JobStore
import Synchronization
import TestOrigin
import TestSupport

/// An engine in this process with randomly failing file operations, restarted in each round over the same state.
///
/// In the end nothing fails any more, every job that had failed is retried, and all must be well.
struct FaultRun {
    private static let caller = Caller(uid: getuid(), isAdmin: true)

    private let rounds: Int
    private let seed: UInt64
    private let directory: URL
    private let file: [UInt8]
    private let files: FaultyFiles

    init(rounds: Int, seed: UInt64, directory: URL) {
        self.rounds = rounds
        self.seed = seed
        self.directory = directory
        var random = SeededGenerator(seed: seed)
        file = (0..<200_000).map { _ in UInt8.random(in: 0...255, using: &random) }
        files = FaultyFiles(seed: seed)
    }

    func run() async throws -> FaultReport {
        try await TestOrigin.run { origin in
            origin["/file"] = OriginResource(self.file, etag: "\"1\"")
            var report = FaultReport()
            var random = SeededGenerator(seed: self.seed)
            var ids: [JobID] = []
            for round in 1...self.rounds {
                self.files.fail(oneIn: Int.random(in: 4...60, using: &random))
                try await self.withEngine { engine in
                    let specs = self.specs(origin, round)
                    let ends = Ends()
                    let new = try await self.submit(specs, to: engine, ends)
                    ids += new
                    try await self.check(new, ends, isLast: false, engine, &report)
                }
            }
            report.rounds = self.rounds
            report.jobs = ids.count
            self.files.fail(oneIn: 0)
            try await self.withEngine { engine in
                for id in ids where try engine.reader.job(id)?.row.state == .failed {
                    _ = await engine.ask(.change(id, .retry(from: .failed)), for: Self.caller)
                }
                try await self.check(ids, nil, isLast: true, engine, &report)
            }
            report.faults = self.files.failures
            let downloads = self.directory.appending(path: "downloads").path
            for path in FileManager.default.enumerator(atPath: downloads)?.compactMap({ $0 as? String }) ?? []
            where path.hasSuffix(".part") { report.problems.append("\(path) is left over") }
            return report
        }
    }

    /// Runs `body` with an engine over the run's directory.
    private func withEngine(_ body: (Engine) async throws -> Void) async throws {
        let path = directory.path
        for name in ["state", "downloads"] { mkdir(path + "/" + name, 0o700) }
        var logger = Logger(label: "faults")
        logger.logLevel = .critical
        var settings = SourceSettings()
        settings.downloads.directory = path + "/downloads"
        let library = try SourceLibrary(
            settings: settings, group: MultiThreadedEventLoopGroup.singleton, logger: logger, files: files.operations)
        let store = try SQLiteStore(path: path + "/state")
        mkdir(store.blobs, 0o700)
        let engine = try Engine(
            settings: EngineSettings(), store: store, reader: store.reader, library: library,
            blobs: store.blobs, clock: .system(steadyAnchor: 0), logger: logger)
        try await engine.start(store.isAfterCleanStop ? .clean : .crashed)
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body(engine)) } catch { outcome = .failure(error) }
        store.close(isClean: await engine.stop())
        try outcome.get()
    }

    private func specs(_ origin: TestOrigin, _ round: Int) -> [JSON] {
        let url = JSON.string(origin.url("/file"))
        func download(_ name: String, _ exists: String = "fail") -> JSON {
            ["type": "download", "url": url, "path": .string(name), "exists": .string(exists)]
        }
        return (0..<40).map { number in
            switch number % 8 {
            case 0: ["source": download("shared", "rename")]
            case 1: ["source": ["type": "url", "url": url]]
            case 2:
                [
                    "source": [
                        "type": "list", "mode": "all",
                        "jobs": [
                            ["source": download("r\(round)/\(number)-a", "replace")],
                            ["source": download("r\(round)/\(number)-b", "replace")],
                        ],
                    ]
                ]
            default: ["source": download("r\(round)/\(number)")]
            }
        }
    }

    private func submit(_ specs: [JSON], to engine: Engine, _ ends: Ends) async throws -> [JobID] {
        let jobs = try specs.map { spec in
            let subscription = engine.nextID()
            engine.register(subscription, of: Self.caller.uid) { ends.receive($0) }
            return try NewJob(
                engine.admission.spec(spec, from: Self.caller), engine.admission.limits, subscription: subscription)
        }
        guard case .submitted(let submitted) = await engine.ask(.submit(jobs), for: Self.caller) else { return [] }
        return try submitted.map { try $0.get().job }
    }

    /// Waits for jobs and checks their outcomes.
    private func check(
        _ ids: [JobID], _ ends: Ends?, isLast: Bool, _ engine: Engine, _ report: inout FaultReport
    ) async throws {
        do {
            try await engine.wait(for: ids, as: Self.caller, id: engine.nextID())
        } catch {
            report.problems.append("the wait for \(ids.count) jobs ended so: \(error)")
        }
        for id in ids {
            guard let stored = try engine.reader.job(id) else {
                report.problems.append("job \(id) is not there")
                continue
            }
            let job = JobView(stored.row, document: stored.document).json()
            if let ends, ends.count(id) != 1 { report.problems.append("job \(id) ended \(ends.count(id)) times") }
            if job["state"] == "succeeded" {
                try await check(job["result"] ?? .null, of: stored.row, engine, &report)
                continue
            }
            report.failed += 1
            let error = job["error"]?["cause"] ?? job["error"]
            if isLast || error?["kind"] != "storage" { report.problems.append("job \(id) ended so: \(job)") }
        }
    }

    /// Looks at the files that a result tells of.
    private func check(_ result: JSON, of row: JobRow, _ engine: Engine, _ report: inout FaultReport) async throws {
        for blob in row.blobs.map(\.blob) {
            let body = try engine.blobs.read(blob, offset: 0, length: file.count + 1)
            if body != file { report.problems.append("job \(row.id): its body is not what the origin has") }
        }
        let paths = result.array?.map { $0["path"]?.string ?? "" } ?? result["path"]?.string.map { [$0] } ?? []
        if paths.isEmpty, row.blobs.isEmpty { report.problems.append("job \(row.id) has neither a file nor a body") }
        for path in paths where FileManager.default.contents(atPath: path)?.elementsEqual(file) != true {
            report.problems.append("job \(row.id): \(path) is not what the origin has")
        }
    }
}

/// Counts how often each job ended.
private final class Ends: Sendable {
    private let counts = Mutex<[JobID: Int]>([:])

    func receive(_ update: JobUpdate) {
        guard case .event(let event) = update, event.state.isTerminal else { return }
        counts.withLock { $0[event.job, default: 0] += 1 }
    }

    func count(_ job: JobID) -> Int { counts.withLock { $0[job, default: 0] } }
}
