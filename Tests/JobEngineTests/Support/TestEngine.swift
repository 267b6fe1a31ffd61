import DataSources
import Dispatch
import Glibc
import InMemoryStore
import JobModel
import Logging
import NIOPosix
import JobCore
import JobEngine
import Synchronization
import TestSupport
import Testing

/// An engine on a store in memory, with the clock of a test.
struct TestEngine: Sendable {
    static let user = Caller(uid: 7, isAdmin: false)
    static let admin = Caller(uid: 0, isAdmin: true)

    /// What tells the time: it stands still, unless the test sets it.
    final class Clock: Sendable {
        let milliseconds = Mutex<Int64>(1_000_000)
    }

    let engine: Engine
    let store: TestStore
    let clock: Clock
    let directory: String

    static func with(
        store: TestStore = TestStore(), life: Int64 = 1, in directory: TemporaryDirectory? = nil,
        start: Core.Start = .clean, hasRealClock: Bool = true, archive: TestArchive? = nil,
        files: FileOperations = .real, _ change: (inout EngineSettings) -> Void = { _ in },
        _ body: (TestEngine) async throws -> Void
    ) async throws {
        let directory = try directory ?? TemporaryDirectory()
        for name in ["downloads", "blobs"] { mkdir(directory.path + "/" + name, 0o700) }
        var settings = EngineSettings()
        change(&settings)
        var logger = Logger(label: "engine")
        logger.logLevel = .critical
        var sources = SourceSettings()
        sources.limits = settings.limits
        sources.downloads.isSystemInstance = true
        sources.downloads.directory = directory.path + "/downloads"
        // A test on a busy machine must not run into them.
        (sources.http.connectTimeout, sources.http.idleTimeout) = (3600, 3600)
        sources.programs.directory = directory.path + "/programs"
        sources.programs.allowsAny = true
        store.begin(life: life, wasStopped: start == .clean)
        let library = try SourceLibrary(
            settings: sources, group: MultiThreadedEventLoopGroup.singleton, logger: logger, files: files)
        let clock = Clock()
        var engineClock = EngineClock.system(steadyAnchor: 0)
        if !hasRealClock {
            engineClock.wall = { Timestamp(milliseconds: clock.milliseconds.withLock(\.self)) }
            engineClock.steady = { clock.milliseconds.withLock(\.self) }
        }
        let engine = try Engine(
            settings: settings, store: store, reader: store, library: library,
            blobs: directory.path + "/blobs", archive: archive,
            clock: engineClock, logger: logger)
        try await engine.start(start)
        let test = TestEngine(engine: engine, store: store, clock: clock, directory: directory.path)
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body(test)) } catch { outcome = .failure(error) }
        _ = await engine.stop()
        withExtendedLifetime(directory) {}
        try outcome.get()
    }

    func job(_ spec: JSON, for caller: Caller = user) throws -> NewJob {
        NewJob(try engine.admission.spec(spec, from: caller), engine.admission.limits)
    }

    func submit(_ spec: JSON, for caller: Caller = user) async throws -> JobID {
        let answer = await engine.ask(.submit([try job(spec, for: caller)]), for: caller)
        guard case .submitted(let jobs) = answer, let job = jobs.first else { throw Refused(answer: answer) }
        return try job.get().job
    }

    /// Something came that should not.
    struct Unexpected: Error {
        let what: String
        init(_ what: String) { self.what = what }
    }

    struct Refused: Error {
        let answer: CoreAnswer
    }

    /// Waits until a job has ended, and gives its row.
    @discardableResult
    func end(of job: JobID) async throws -> JobRow {
        await store.until { $0.job(job)?.state.isTerminal ?? true }
        return try #require(store.rows.job(job))
    }

    /// Submits a job, waits for its end, and gives its row.
    func run(_ spec: JSON, for caller: Caller = user) async throws -> JobRow {
        try await end(of: try await submit(spec, for: caller))
    }

    /// Waits until what the engine does with files for a user is done: as many threads as one user has are here at once.
    func settle(_ user: UInt32) async {
        final class Meeting: Sendable {
            let arrived = Mutex(0)
            let gate = DispatchSemaphore(value: 0)
        }
        let meeting = Meeting()
        let threads = Self.threadsOfAUser
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<threads {
                group.addTask { [engine] in
                    await engine.blocking(for: user) {
                        let isLast = meeting.arrived.withLock { count in
                            count += 1
                            return count == threads
                        }
                        if isLast { for _ in 0..<threads { meeting.gate.signal() } }
                        meeting.gate.wait()
                    }
                }
            }
        }
    }

    /// Three quarters of the four threads, in a system instance.
    private static let threadsOfAUser = 3

    /// The result of a row.
    func result(of row: JobRow) throws -> JSON {
        switch row.carried {
        case .success(.inline(let text)): return try JSON(parsing: text)
        case .success(.file(let blob)):
            return try JSON(parsing: try contents(of: blob))
        case .failure(let error): throw error
        case nil: return .null
        }
    }

    func contents(of blob: BlobReference) throws -> [UInt8] {
        try SystemFile.contents(directory + "/blobs/" + blob.name)
    }
}

enum SystemFile {
    static func contents(_ path: String) throws -> [UInt8] {
        let file = try #require(fopen(path, "r"))
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { bytes += buffer[..<count] }
        return bytes
    }
}
