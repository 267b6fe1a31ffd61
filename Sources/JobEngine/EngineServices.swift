import DataSources
import JobModel
import Logging
import JobCore
import Synchronization

/// What all parts of the engine share, on any thread.
final class EngineServices: Sendable {
    /// What the configuration says now.
    struct Current {
        var settings: EngineSettings
        var admission: Admission
    }

    let reader: any JobReader
    let library: SourceLibrary
    let blobs: BlobStore
    let backups = Backups()
    let clock: EngineClock
    let metrics: EngineMetrics
    let logger: Logger
    let inbox = Inbox()
    let board = Board()
    let templates = TemplateCache()
    let current: Mutex<Current>
    let status = Mutex(EngineStatus())
    /// Of the status; one that is not taken yet stands for all that follow it.
    let changes = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let lastID = Atomic<Int64>(0)

    init(
        settings: EngineSettings, reader: any JobReader, library: SourceLibrary, blobs: BlobStore, clock: EngineClock,
        metrics: EngineMetrics, logger: Logger
    ) {
        self.reader = reader
        self.library = library
        self.blobs = blobs
        self.clock = clock
        self.metrics = metrics
        self.logger = logger
        current = Mutex(Current(settings: settings, admission: Self.admission(library, settings)))
    }

    var settings: EngineSettings { current.withLock(\.settings) }
    var admission: Admission { current.withLock(\.admission) }
    var limits: JobLimits { current.withLock(\.settings.limits) }

    func configure(_ settings: EngineSettings) {
        let admission = Self.admission(library, settings)
        current.withLock { $0 = Current(settings: settings, admission: admission) }
    }

    private static func admission(_ library: SourceLibrary, _ settings: EngineSettings) -> Admission {
        Admission(policy: library.policy, limits: settings.limits)
    }

    /// Whether jobs can be submitted to a queue.
    func takesJobs(_ queue: String) -> Bool {
        status.withLock { $0.queues.contains { $0.takesJobs && $0.settings.name == queue } }
    }

    /// An id of a request, a subscription or something to be stored, never given twice.
    func nextID() -> Int64 { lastID.add(1, ordering: .relaxed).newValue }

    // MARK: - Values

    /// A JSON text as it is stored: in the row, or in a file where it is long. Blocks then.
    func stored(_ text: [UInt8], room: Int64 = .max) throws(JobError) -> StoredValue {
        guard text.count > limits.inlineResult else { return .inline(text) }
        guard text.count <= room else {
            throw JobError(
                .tooLarge,
                "The result of \(text.count) bytes cannot be kept, as there is room for \(max(0, room)) bytes more "
                    + "of your jobs; remove some finished ones, then retry the job.")
        }
        return .file(try blobs.write(text))
    }

    /// The value of what is stored.
    func value(of stored: StoredValue) throws(JobError) -> JSON {
        let text = try blobs.text(of: stored)
        do {
            return try JSON(parsing: text, maximumDepth: 512, budget: JobLimits.mostValues)
        } catch {
            throw JobError(.tooLarge, "A stored value cannot be used: \(error.reason); select less of it.")
        }
    }

    /// How a run ended that gave this outcome.
    func end(
        _ outcome: Outcome, room: Int64, body: BlobReference? = nil, bytes: Int64 = 0, received: Int64 = 0
    ) -> RunEnd {
        do throws(JobError) {
            let value = try outcome.get()
            return RunEnd(.success(try stored(value.utf8, room: room)), body: body, bytes: bytes, received: received)
        } catch {
            return RunEnd(.failure(error), bytes: bytes, received: received)
        }
    }
}
