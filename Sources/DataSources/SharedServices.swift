import JobModel
import Logging
import NIOCore
import SystemPackage

/// The objects that a library has once, whatever its settings are.
struct SharedServices: Sendable {
    let resolver: NameResolver
    /// The event loop that measures time in tests; nil for the loop of each connection.
    let timers: (any EventLoop)?
    /// The files that downloads write.
    let reservations = FileReservations()
    let files: FileOperations
    /// Threads for users' files. Slow file systems may block all of them, so other work has its own threads.
    let userFiles: FileQueue
    /// Threads for the daemon's own files: documents, programs and certificates.
    let ownFiles: FileQueue
    let documents: DocumentBudget
    let spills = SpillBudget()
    let logger: Logger
}

extension SharedServices {
    /// Removes the `.part` that a checkpoint describes, if it still exists.
    func discardPart(
        of checkpoint: DownloadCheckpoint, owner: UInt32, below directories: DownloadDirectories
    ) async {
        guard let path = try? checkpoint.path(of: owner, below: directories) else { return }
        do throws(Errno) {
            try await userFiles.of(owner).run { [files] () throws(Errno) in
                try DownloadTarget.discardPart(path, checkpoint, files)
            }
        } catch {
            logger.warning(
                "The file of an unfinished download could not be removed.",
                metadata: ["path": "\(path.absolute(checkpoint.name))", "error": "\(error)"])
        }
    }
}
