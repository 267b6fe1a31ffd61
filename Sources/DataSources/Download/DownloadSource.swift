import DeferredKit
import JobModel
import Logging

/// The source `download`: a file that is fetched, checked and put in its place.
struct DownloadSource: DataSource {
    let spec: DownloadSpec
    let context: SourceContext
    let services: DownloadServices
    let task: TransferTask

    func start() -> Deferred<JSON, any Error> {
        task.start { handle async throws(JobError) in
            try await DownloadAttempt(spec: spec, context: context, services: services, handle: handle).run()
        }
    }
}

/// What all downloads share; one object, as each step of each of them that waits would keep a copy of a value.
final class DownloadServices: Sendable {
    let transport: HTTPTransport
    let policy: AccessPolicy
    let folders: DownloadFolders
    let registry: TargetRegistry
    let files: FileOperations
    let queue: FileQueue
    let userAgent: String
    let minimumFree: Int
    let logger: Logger

    init(
        transport: HTTPTransport, policy: AccessPolicy, folders: DownloadFolders, files: FileOperations,
        queue: FileQueue, userAgent: String, minimumFree: Int, logger: Logger
    ) {
        self.transport = transport
        self.policy = policy
        self.folders = folders
        registry = TargetRegistry()
        self.files = files
        self.queue = queue
        self.userAgent = userAgent
        self.minimumFree = minimumFree
        self.logger = logger
    }

    private init(_ services: DownloadServices, queue: FileQueue) {
        transport = services.transport
        policy = services.policy
        folders = services.folders
        registry = services.registry
        files = services.files
        self.queue = queue
        userAgent = services.userAgent
        minimumFree = services.minimumFree
        logger = services.logger
    }

    /// The same, with the file operations of `user`.
    func serving(_ user: UInt32) -> DownloadServices { DownloadServices(self, queue: queue.of(user)) }
}
