import JobModel
import Logging
import SystemPackage

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

    /// Removes the `.part` that a checkpoint of `owner` is about, if it is still there.
    func discardPart(of checkpoint: DownloadCheckpoint, owner: UInt32) async {
        guard let path = try? checkpoint.path(of: owner, below: directories) else {
            return
        }
        do throws(Errno) {
            try await queue.run { [files] () throws(Errno) in
                try DownloadTarget.discardPart(path, checkpoint, files)
            }
        } catch {
            logger.warning(
                "What an unfinished download left could not be removed.",
                metadata: ["path": "\(path.absolute(checkpoint.name))", "error": "\(error)"])
        }
    }

    /// The same, with the file operations of `user`, for files below these directories.
    func serving(_ user: UInt32, below directories: DownloadDirectories) -> DownloadServices {
        DownloadServices(self, queue: queue.of(user), directories: directories)
    }
}
