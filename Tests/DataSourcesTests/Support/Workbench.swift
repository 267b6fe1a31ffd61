import DataSources
import DeferredKit
import Foundation
import JobModel
import Logging
import NIOCore
import NIOEmbedded
import NIOPosix
import Synchronization
import Testing
import TestOrigin

/// A library of sources in a temporary directory of its own, with checkpoints and records as an engine would keep them.
final class Workbench: Sendable {
    let library: SourceLibrary
    /// Absolute, without links in it.
    let directory: String
    private let limits: JobLimits
    private let notes = Mutex<[JobID: JSON]>([:])
    private let memories = Mutex<[String: JSON]>([:])
    private let noteCount = Mutex(0)
    private let notesFail = Mutex(false)

    /// Lets notes fail to be saved from now on.
    func refuseNotes() { notesFail.withLock { $0 = true } }

    /// Who resolves names.
    struct Names: Sendable {
        let lookup: NameResolver.Lookup

        static let system = Names(lookup: NameResolver.system)
    }

    /// The directory that relative paths lie in.
    var downloads: String { directory + "/downloads" }
    /// A directory that absolute paths may lie in.
    var root: String { directory + "/root" }
    var bodyPath: String { directory + "/body" }

    /// The log of a program's output.
    func logPath(of job: JobID) -> String { directory + "/log-\(job)" }

    /// How often a note was saved.
    var savedNotes: Int { noteCount.withLock { $0 } }

    private init(
        directory: String, settings: SourceSettings, timers: (any EventLoop)? = nil, files: FileOperations,
        names: Names = .system
    ) throws {
        self.directory = directory
        limits = settings.limits
        let warnings = warnings
        let logger = Logger(label: "test") { _ in WarningLog(warnings: warnings) }
        library = try SourceLibrary(
            settings: settings, group: MultiThreadedEventLoopGroup.singleton, timers: timers, logger: logger,
            files: files, lookup: names.lookup)
    }

    /// Runs `body` with a library of the default settings, as `change` alters them.
    static func run<Value>(
        files: FileOperations = .real, timers: (any EventLoop)? = nil,
        names: Names = .system, _ change: (inout SourceSettings) -> Void = { _ in },
        _ body: (Workbench) async throws -> Value
    ) async throws -> Value {
        let directory =
            FileManager.default.temporaryDirectory.resolvingSymlinksInPath().path
            + "/deferd-sources-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: directory + "/root", withIntermediateDirectories: true)
        // Whatever the umask is: where callers' own rights count they have to get here.
        for directory in [directory, directory + "/root"] { chmod(directory, 0o755) }
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var settings = Self.settings(of: directory, timers)
        change(&settings)
        let bench = try Workbench(
            directory: directory, settings: settings, timers: timers, files: files, names: names)
        return try await bench.use(body)
    }

    private static func settings(of directory: String, _ timers: (any EventLoop)?) -> SourceSettings {
        var settings = SourceSettings()
        settings.downloads.directory = directory + "/downloads"
        settings.downloads.roots = [directory + "/root"]
        // Longer than a busy machine may take, by which the time would else be up.
        if timers == nil { (settings.http.connectTimeout, settings.http.idleTimeout) = (3600, 3600) }
        return settings
    }

    /// Runs `body`, then shuts the library down.
    private func use<Value>(_ body: (Workbench) async throws -> Value) async throws -> Value {
        let outcome: Result<Value, any Error>
        do {
            outcome = .success(try await body(self))
        } catch {
            outcome = .failure(error)
        }
        await library.shutdown()
        return try outcome.get()
    }

    /// Runs `body` with another library over the same directory, checkpoints and records, as after a restart.
    func restarted(
        files: FileOperations = .real, timers: (any EventLoop)? = nil, _ body: (Workbench) async throws -> Void
    ) async throws {
        let bench = try Workbench(
            directory: directory, settings: Self.settings(of: directory, timers), timers: timers, files: files)
        bench.notes.withLock { notes in notes = self.notes.withLock { $0 } }
        bench.memories.withLock { memories in memories = self.memories.withLock { $0 } }
        try await bench.use(body)
    }

    /// Why records of downloads cannot be stored, if they cannot.
    /// What the library has warned of.
    let warnings = WarningLog.Warnings()
    /// The jobs that will go on with their notes.
    let unfinished = Mutex<Set<JobID>>([])
    /// The connections that a download may have.
    private static let connections = 16
    /// What servers said that refused one of several connections.
    let refusals = AsyncStream.makeStream(of: JobError.self)
    /// Bytes that a body in a file may have.
    let roomForBody = Mutex(Int64.max)

    /// The note that is kept for `job`.
    subscript(checkpoint job: JobID) -> JSON? {
        get { notes.withLock { $0[job] } }
        set { notes.withLock { $0[job] = newValue } }
    }

    /// What a source is run with, as attempt `attempt` of `job`.
    func context(_ job: JobID, attempt: Int = 1, owner: UInt32 = 1000, timeout: Double? = nil) -> SourceContext {
        var context = SourceContext(
            job: job, link: 0, attempt: attempt, owner: owner, bodyPath: bodyPath)
        context.linkStartedAt = Timestamp(milliseconds: 1)
        context.saveCheckpoint = { checkpoint in
            if self.notesFail.withLock({ $0 }) {
                return Deferred(.failure(JobError(.storage, "The disk is full.")))
            }
            self.noteCount.withLock { $0 += 1 }
            self[checkpoint: job] = checkpoint
            return .succeeded(())
        }
        context.lastDownload = { path in .succeeded(self.memories.withLock { $0[path] }) }
        context.recordDownload = { path, record in
            self.memories.withLock { $0[path] = record }
            return .succeeded(())
        }
        context.logPath = logPath(of: job)
        context.roomForBody = roomForBody.withLock(\.self)
        context.timeout = timeout
        context.checkpoint = self[checkpoint: job]
        context.unfinishedTransfers = { _ in
            let jobs = self.unfinished.withLock(\.self).sorted()
            return .succeeded(
                jobs.compactMap { job in
                    self[checkpoint: job].map {
                        UnfinishedTransfer(job: job, owner: owner, link: 0, checkpoint: $0)
                    }
                })
        }
        context.connections = Self.connections
        context.reportRefusal = { error in self.refusals.continuation.yield(error) }
        return context
    }

    func parameters(_ source: JSON) throws -> SourceParameters {
        try SourceParameters(source, mode: .literal, limits: limits)
    }

    /// Starts the source that `source` describes.
    func start(
        _ source: JSON, job: JobID = 1, attempt: Int = 1, owner: UInt32 = 1000, timeout: Double? = nil
    ) throws -> Deferred<JSON, any Error> {
        let context = context(job, attempt: attempt, owner: owner, timeout: timeout)
        return library.start(try parameters(source), context)
    }

    /// Runs the source and returns its result.
    func result(
        _ source: JSON, job: JobID = 1, attempt: Int = 1, owner: UInt32 = 1000, timeout: Double? = nil
    ) async throws -> JSON {
        try await start(source, job: job, attempt: attempt, owner: owner, timeout: timeout).get()
    }

    /// Runs the source, which must fail, and returns how.
    func failure(
        _ source: JSON, job: JobID = 1, attempt: Int = 1, owner: UInt32 = 1000, timeout: Double? = nil
    ) async throws -> JobError {
        try await failure(of: start(source, job: job, attempt: attempt, owner: owner, timeout: timeout))
    }

    /// Returns the failure of what was started.
    func failure(of deferred: Deferred<JSON, any Error>) async throws -> JobError {
        do {
            throw UnexpectedSuccess(result: try await deferred.get())
        } catch let error as JobError {
            return error
        }
    }

    struct UnexpectedSuccess: Error {
        let result: JSON
    }

    /// The names below `path`, at any depth.
    func names(below path: String) -> [String] {
        (FileManager.default.enumerator(atPath: path)?.allObjects as? [String] ?? []).sorted()
    }

    /// The access list of what `path` names; nil where its mode says all.
    func accessList(of path: String) throws -> AccessList? {
        let files = FileOperations.real
        let descriptor = try files.openBeneath(files.openDirectory("/"), String(path.dropFirst()), O_RDONLY, 0)
        defer { files.close(descriptor) }
        return try files.accessList(of: descriptor)
    }

    func bytes(of path: String) -> [UInt8]? {
        FileManager.default.contents(atPath: path).map(Array.init)
    }

    func write(_ bytes: [UInt8], to path: String) throws {
        let directory = (path as NSString).deletingLastPathComponent
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }

    /// Bytes that compress badly and are the same every time; another `seed` gives others.
    static func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
        var state = seed &* 0x9E37_79B9_7F4A_7C15
        return (0..<count).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 33)
        }
    }
}
