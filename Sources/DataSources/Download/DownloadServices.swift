import JobModel
import Logging
import SystemPackage

/// What a download is made with; an object, so that its asynchronous steps share it instead of copying it.
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

    /// Those for the files of `owner` below these directories.
    init(_ rules: SourceRules, _ shared: SharedServices, for owner: UInt32, below directories: DownloadDirectories) {
        transport = rules.transport
        policy = rules.policy.access
        self.directories = directories
        registry = shared.reservations
        files = shared.files
        queue = shared.queue.of(owner)
        userAgent = rules.settings.http.userAgent
        minimumFree = rules.settings.downloads.minimumFree
        logger = shared.logger
    }

    /// Removes the `.part` that a checkpoint of `owner` is about, if it is still there.
    func discardPart(of checkpoint: DownloadCheckpoint, owner: UInt32) async {
        guard let path = try? checkpoint.path(of: owner, below: directories) else { return }
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
}
