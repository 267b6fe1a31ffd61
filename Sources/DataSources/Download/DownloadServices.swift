import JobModel
import Logging

/// What all downloads share; an object, so that their asynchronous steps share it instead of copying it.
final class DownloadServices: Sendable {
    let transport: HTTPTransport
    let policy: AccessPolicy
    let directories: DownloadDirectories
    let registry: FileReservations
    let files: FileOperations
    let queue: FileQueue
    let userAgent: String
    let minimumFree: Int
    let logger: Logger

    init(
        transport: HTTPTransport, policy: AccessPolicy, directories: DownloadDirectories,
        registry: FileReservations, files: FileOperations, queue: FileQueue, userAgent: String, minimumFree: Int,
        logger: Logger
    ) {
        self.transport = transport
        self.policy = policy
        self.directories = directories
        self.registry = registry
        self.files = files
        self.queue = queue
        self.userAgent = userAgent
        self.minimumFree = minimumFree
        self.logger = logger
    }

    private init(_ services: DownloadServices, queue: FileQueue, directories: DownloadDirectories) {
        transport = services.transport
        policy = services.policy
        self.directories = directories
        registry = services.registry
        files = services.files
        self.queue = queue
        userAgent = services.userAgent
        minimumFree = services.minimumFree
        logger = services.logger
    }

    /// The same, with the file operations of `user`, for files below these directories.
    func serving(_ user: UInt32, below directories: DownloadDirectories) -> DownloadServices {
        DownloadServices(self, queue: queue.of(user), directories: directories)
    }
}
