import JobModel
import Logging
import SystemPackage

/// What a download is made with; an object, so that its asynchronous steps share it instead of copying it.
final class DownloadServices: Sendable {
    private let rules: SourceRules
    private let shared: SharedServices
    let directories: DownloadDirectories
    let queue: FileQueue

    /// Those for the files of `owner` below these directories.
    init(_ rules: SourceRules, _ shared: SharedServices, for owner: UInt32, below directories: DownloadDirectories) {
        self.rules = rules
        self.shared = shared
        self.directories = directories
        queue = shared.queue.of(owner)
    }

    var transport: HTTPTransport { rules.transport }
    var policy: AccessPolicy { rules.policy.access }
    var userAgent: String { rules.settings.http.userAgent }
    var minimumFree: Int { rules.settings.downloads.minimumFree }
    var registry: FileReservations { shared.reservations }
    var files: FileOperations { shared.files }
    var logger: Logger { shared.logger }

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
