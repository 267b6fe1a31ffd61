import Glibc
import JobModel
import SystemPackage

/// The file that a download writes: its directory, its reserved name, and its unfinished `.part`.
final class DownloadTarget: Sendable {
    let path: DownloadPath
    /// The name reserved in the directory.
    let name: String
    let part: ScratchFile
    private let directory: TargetDirectory
    private let writer: FileReservations.Writer
    private let reservations: FileReservations
    private let files: FileOperations
    private let queue: FileQueue

    /// The absolute path of the file.
    var absolutePath: String { path.absolute(name) }
    private var partName: String { name + DownloadPath.partSuffix }
    var partPath: String { absolutePath + DownloadPath.partSuffix }

    /// Reserves a name in the directory: that of `path`, or a free one, if possible `preferred`. Blocks.
    init(
        _ path: DownloadPath, in directory: TargetDirectory, renaming: Bool, preferred: String?,
        writer: FileReservations.Writer, _ transfer: Transfer
    ) throws(JobError) {
        self.path = path
        self.writer = writer
        self.directory = directory
        (reservations, files, queue) = (transfer.shared.reservations, transfer.files, transfer.userFiles)
        do throws(JobError) {
            name = try Self.reserve(path, in: directory, renaming, preferred, writer, reservations, files)
        } catch {
            directory.removeMadeDirectories()
            throw error
        }
        part = ScratchFile(in: directory.opened, files, queue)
    }

    /// The number of names tried with `exists: "rename"`.
    static let alternatives = 9999

    private static func reserve(
        _ path: DownloadPath, in directory: TargetDirectory, _ renaming: Bool, _ preferred: String?,
        _ writer: FileReservations.Writer, _ reservations: FileReservations, _ files: FileOperations
    ) throws(JobError) -> String {
        guard renaming else {
            guard let other = reservations.reserve(path.key(path.name), for: writer) else { return path.name }
            // The message does not reveal the id of another user's job.
            let state = other.owner == writer.owner ? "downloaded by job \(other.job)" : "written by another job"
            throw JobError(
                .exists, "\"\(path.absolute())\" is being \(state); wait for that job, or give another path.")
        }
        for count in -1...alternatives {
            let name = count < 0 ? preferred : count == 0 ? path.name : path.alternative(count)
            guard let name else { continue }
            if try status(name, in: directory, path, files) == nil,
                reservations.reserve(path.key(name), for: writer) == nil
            {
                return name
            }
        }
        throw JobError(
            .exists, "\"\(path.absolute())\" and \(alternatives) names like it are taken; give another path.")
    }

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

    // MARK: - The existing file

    /// The status of the file with the reserved name, or with `other`; nil if there is none. Blocks.
    func existing(_ other: String? = nil) throws(JobError) -> FileOperations.Status? {
        try Self.status(other ?? name, in: directory, path, files)
    }

    /// Opens the existing file if the caller may read it. Blocks.
    func openExisting() throws(JobError) -> ReadableFile {
        if let file = try ReadableFile(name, in: directory.opened, path, files, queue) { return file }
        throw JobError(.exists, "\"\(absolutePath)\" exists but is not a regular file; give another path.")
    }

    /// Throws if the caller may not replace `name`. Blocks.
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

    // MARK: - The .part

    /// Makes an empty `.part`, and unlinks one that an earlier download of the caller left. Blocks.
    ///
    /// The old file is never truncated instead, so no checkpoint of an earlier version matches the new one.
    func makePart() throws(JobError) -> FileOperations.Status.Identity {
        do throws(Errno) {
            try part.make(partName, mode: path.isPrivate ? 0o600 : 0o644) {
                [path, files] (directory, name) throws(Errno) in
                guard let owner = path.owner else { return Self.isPart(try files.status(directory, name)) }
                let (status, isTheirs) = try files.status(name, in: directory, madeFor: owner)
                return isTheirs && Self.isPart(status)
            }
            if let owner = path.owner {
                try files.setAccessList(part.descriptor, AccessList([.read, .write], for: [owner]), false)
            }
            return try files.statusOfOpen(part.descriptor).identity
        } catch  where error == .fileExists {
            throw JobError(
                .exists,
                "\"\(partPath)\" exists and is not of a download of yours; give another path, or move it away.")
        } catch {
            var failure = JobError(path: error, "written", partPath)
            // Another download may just have removed the directory that it had made.
            failure.isRetryable = error == .noSuchFileOrDirectory
            throw failure
        }
    }

    /// Whether a file can be a `.part` of this daemon.
    private static func isPart(_ status: FileOperations.Status) -> Bool {
        status.isRegular && status.links == 1 && status.owner == geteuid()
    }

    /// Opens the `.part` that an earlier attempt left, if it is the same file; returns its size. Blocks.
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

    /// Cuts the `.part`. Blocks.
    func cutPart(to size: Int64) throws(JobError) {
        do throws(Errno) {
            try files.truncate(part.descriptor, to: size)
        } catch {
            throw JobError(path: error, "written", partPath)
        }
    }

    /// Unlinks the `.part` of `checkpoint`, if it is still the same file. Blocks.
    static func discardPart(
        _ path: DownloadPath, _ checkpoint: DownloadCheckpoint, _ files: FileOperations
    ) throws(Errno) {
        let name = checkpoint.name + DownloadPath.partSuffix
        do throws(Errno) {
            guard let directory = try TargetDirectory.existingForCleanUp(path, files: files),
                case let status = try files.status(directory.descriptor, name), isPart(status),
                status.identity.isSame(as: checkpoint.part)
            else { return }
            try files.unlink(directory.descriptor, name)
        } catch  where error == .noSuchFileOrDirectory {}
    }

    /// The free bytes on the disk of the directory, if they are known. Blocks.
    var freeBytes: Int64? { files.freeBytes(directory.opened.descriptor) }

    // MARK: - Ends

    /// Durably gives the complete `.part` its name; false if the name is taken and not to be replaced. Blocks.
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
                "\"\(path.absolute(name))\" is not the downloaded file, because its .part was replaced; find out who else writes to that directory."
            )
        } catch {
            throw JobError(path: error, "put in its place", path.absolute(name))
        }
    }

    /// Ends the reservation and leaves the file as it is.
    func release() {
        if part.keep() { reservations.release(path.key(name)) }
    }

    /// Keeps the `.part` and the reservation for the job's next attempt.
    func keep(after attempt: Int) {
        if part.keep() { reservations.keep(path.key(name), for: writer, after: attempt) }
    }

    /// Removes the file, the directories made for it, and the reservation. May be called on any thread. Blocks.
    func remove() {
        guard part.remove() else { return }
        reservations.release(path.key(name))
        directory.removeMadeDirectories()
    }
}
