import SystemPackage
import Glibc
import JobModel

/// The file that one download is to become: its directory, its reserved name, and its unfinished `.part`.
final class DownloadTarget: Sendable {
    let path: DownloadPath
    /// The name reserved in the directory.
    let name: String
    let part: ScratchFile
    private let directory: TargetDirectory
    private let writer: FileReservations.Writer
    private let services: DownloadServices

    private var registry: FileReservations { services.registry }
    private var files: FileOperations { services.files }

    /// The absolute path of the file.
    var absolutePath: String { path.absolute(name) }

    /// Opens the directory and reserves a name in it: that of `path`, or the next free one. Blocks.
    ///
    /// `existing` is the directory where it was opened before. `preferred` is the name that an earlier attempt chose, which
    /// may be taken again.
    init(
        _ path: DownloadPath, in existing: OpenDirectory?, renaming: Bool, preferred: String?,
        writer: FileReservations.Writer, _ services: DownloadServices
    ) throws(JobError) {
        self.path = path
        self.services = services
        self.writer = writer
        directory = try TargetDirectory(path, existing: existing, registry: services.registry, files: services.files)
        do throws(JobError) {
            name = try Self.reserved(path, in: directory, renaming, preferred, writer, services)
        } catch {
            directory.removeMadeDirectories(services.registry)
            throw error
        }
        part = ScratchFile(in: directory.opened, files: services.files, queue: services.queue)
    }

    private static func reserved(
        _ path: DownloadPath, in directory: TargetDirectory, _ renaming: Bool, _ preferred: String?,
        _ writer: FileReservations.Writer, _ services: DownloadServices
    ) throws(JobError) -> String {
        let registry = services.registry
        guard renaming else {
            guard let other = registry.reserve(path.key(path.name), for: writer) else { return path.name }
            // The message does not reveal the id of another user's job.
            let state = other.owner == writer.owner ? "downloaded by job \(other.job)" : "written already"
            throw JobError(
                .exists, "\"\(path.absolute())\" is being \(state); wait for that to end, or give another path.")
        }
        for count in -1...Self.alternatives {
            let name = count < 0 ? preferred : count == 0 ? path.name : path.alternative(count)
            guard let name else { continue }
            if try status(name, in: directory, path, services.files) == nil,
                registry.reserve(path.key(name), for: writer) == nil
            {
                return name
            }
        }
        throw JobError(
            .exists, "\"\(path.absolute())\" and \(alternatives) names like it are taken; give another path.")
    }

    /// How many other names are tried.
    static let alternatives = 9999

    private static func status(
        _ name: String, in directory: TargetDirectory, _ path: DownloadPath, _ files: FileOperations
    ) throws(JobError) -> FileOperations.Status? {
        do throws(Errno) {
            return try files.status(directory.opened.descriptor, name)
        } catch  where error == .noSuchFileOrDirectory {
            return nil
        } catch {
            throw JobError(path: error, "looked at", path.absolute(name))
        }
    }

    /// What is under the name, or under `other`, now; or nil. Blocks.
    func existing(_ other: String? = nil) throws(JobError) -> FileOperations.Status? {
        try Self.status(other ?? name, in: directory, path, files)
    }

    /// Opens what is under the name for reading, for a caller who may read it. Blocks.
    func openExisting() throws(JobError) -> OpenFile {
        if let file = try OpenFile(regular: name, in: directory.opened, path, files: files, queue: services.queue) {
            return file
        }
        throw JobError(.exists, "\"\(absolutePath)\" is there but no ordinary file; give another path.")
    }

    /// Refuses a caller who may not replace what is under `name`. Blocks.
    func checkReplacing(_ name: String) throws(JobError) {
        do throws(Errno) {
            guard let rights = CallerRights(of: path, files),
                try !rights.permitReplacing(name, in: directory.opened.descriptor)
            else { return }
        } catch  where error == .noSuchFileOrDirectory {
            return
        } catch {
            throw JobError(path: error, "looked at", path.absolute(name))
        }
        throw JobError(forbidden: path.absolute(name))
    }

    private var partName: String { name + DownloadPath.partSuffix }
    /// The absolute path of the `.part`.
    var partPath: String { absolutePath + DownloadPath.partSuffix }

    /// Makes a new, empty `.part`, instead of one that an earlier download of the caller left. Blocks.
    ///
    /// It is always a new file, never an old one truncated, so no checkpoint of an earlier version can match it.
    func makePart() throws(JobError) -> FileOperations.Status.Identity {
        let (path, files) = (path, files)
        do throws(Errno) {
            try part.make(partName, mode: path.isPrivate ? 0o600 : 0o644) { (directory, name) throws(Errno) in
                try Self.isAbandoned(name, in: directory, path, files)
            }
            if let owner = path.owner {
                try files.setAccessList(part.descriptor, AccessList([.read, .write], for: [owner]), false)
            }
            return try files.statusOfOpen(part.descriptor).identity
        } catch  where error == .fileExists {
            throw JobError(
                .exists,
                "\"\(partPath)\" is there and not of a download of yours; give another path, or move it away."
            )
        } catch {
            var failure = JobError(path: error, "written", partPath)
            // Another download, which made the directory, may just have removed it, as empty.
            failure.isRetryable = error == .noSuchFileOrDirectory
            throw failure
        }
    }

    /// Whether the `.part` of that name is one that the daemon made, for the same caller, and that no download writes now:
    /// the name is reserved.
    private static func isAbandoned(
        _ name: String, in directory: Int32, _ path: DownloadPath, _ files: FileOperations
    ) throws(Errno) -> Bool {
        guard let owner = path.owner else { return isPart(try files.status(directory, name)) }
        let (status, isTheirs) = try files.status(name, in: directory, madeFor: owner)
        return isPart(status) && isTheirs
    }

    /// Whether a file can be a `.part` of this daemon.
    private static func isPart(_ status: FileOperations.Status) -> Bool {
        status.isRegular && status.links == 1 && status.owner == geteuid()
    }

    /// Opens the `.part` that an earlier attempt left, where it is that very file; its size. Blocks.
    func reopenPart(of checkpoint: DownloadCheckpoint) -> Int64? {
        guard checkpoint.part.createdAt != 0 else { return nil }
        let isSameBoot = !files.bootID.isEmpty && checkpoint.bootID == files.bootID && checkpoint.part.device != 0
        var size: Int64?
        try? part.open(partName) { status in
            let isSame = isSameBoot ? status.identity == checkpoint.part : status.identity.isSame(as: checkpoint.part)
            size = status.size
            return isSame && Self.isPart(status)
        }
        return part.descriptor >= 0 ? size : nil
    }

    /// Cuts off what of the `.part` does not count. Blocks.
    func cutPart(to size: Int64) throws(JobError) {
        do throws(Errno) {
            try files.truncate(part.descriptor, size)
        } catch {
            throw JobError(path: error, "written", partPath)
        }
    }

    /// Unlinks the `.part` that `checkpoint` is about, where it is still that very file. Blocks.
    static func discardPart(_ path: DownloadPath, _ checkpoint: DownloadCheckpoint, _ files: FileOperations)
        throws(Errno)
    {
        let name = checkpoint.name + DownloadPath.partSuffix
        do throws(Errno) {
            guard let directory = try TargetDirectory.existingForCleanUp(path, files: files),
                case let status = try files.status(directory.descriptor, name), isPart(status),
                status.identity.isSame(as: checkpoint.part)
            else { return }
            try files.unlink(directory.descriptor, name)
        } catch  where error == .noSuchFileOrDirectory {}
    }

    /// Bytes that are free on the disk of the directory; nil where that is not known. Blocks.
    var freeBytes: Int64? { files.freeBytes(directory.opened.descriptor) }

    /// Gives the finished `.part` its name, durably; false where there is something and it is not to be replaced.
    /// Blocks.
    func finish(as name: String, replacing: Bool) throws(JobError) -> Bool {
        if replacing { try checkReplacing(name) }
        do throws(Errno) {
            try part.rename(to: name, replacing: replacing)
            try files.sync(directory.opened.descriptor)
            return true
        } catch  where error == .fileExists && !replacing {
            return false
        } catch  where error == .staleNFSFileHandle {
            throw JobError(
                .storage,
                "\"\(path.absolute(name))\" is not what was downloaded, as its .part was replaced meanwhile; see who else writes into that directory."
            )
        } catch {
            throw JobError(path: error, "put in its place", path.absolute(name))
        }
    }

    /// Ends the reservation and leaves the file as it is.
    func release() {
        if part.keep() { registry.release(path.key(name)) }
    }

    /// Leaves the `.part` for the job's next attempt, and the name to that alone.
    func keep(after attempt: Int) {
        if part.keep() { registry.keep(path.key(name), for: writer, after: attempt) }
    }

    /// Leaves nothing behind: neither file nor directory nor reservation. May come from any thread. Blocks.
    func remove() {
        guard part.remove() else { return }
        registry.release(path.key(name))
        directory.removeMadeDirectories(registry)
    }
}
