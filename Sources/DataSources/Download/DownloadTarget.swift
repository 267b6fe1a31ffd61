import Glibc
import JobModel
import Synchronization
import SystemPackage

/// The file that a download writes: its directory, its reserved name, and its unfinished `.part`.
///
/// The `.part` is wanted until it is released or removed. Operations that open, rename or unlink it run one at a time and
/// block; ``remove()`` may be called on any thread: once it returns, no name is made or changed.
final class DownloadTarget: Sendable {
    private struct Part {
        var isWanted = true
        /// Its present name; nil before it is made.
        var name: String?
        var file: OpenFile?
    }

    let path: DownloadPath
    let name: String
    /// Also held while its name changes, which blocks: on file threads, or to remove the file.
    private let part = Mutex(Part())
    let transfer: Transfer
    private let directory: OpenFile
    private let files: FileOperations

    var absolutePath: String { path.absolute(name) }
    private var partName: String { DownloadPath.partName(of: name) }
    var partPath: String { path.absolute(partName) }

    /// Reserves a name in the directory: that of `path`, or a free one, if possible `preferred`. Blocks.
    init(
        _ path: DownloadPath, in directory: OpenFile, renaming: Bool, preferred: String?, _ transfer: Transfer
    ) throws(JobError) {
        // The engine may have given up this run while it waited for the file system, and begun the next one.
        try transfer.control.check()
        self.path = path
        self.directory = directory
        (self.transfer, files) = (transfer, transfer.files)
        let writer = FileReservations.Writer(job: transfer.context.job, owner: transfer.owner)
        let reservations = transfer.shared.reservations
        guard renaming else {
            name = path.name
            guard let other = reservations.reserve(path.key(name), for: writer) else { return }
            throw JobError(beingWritten: path.absolute(), by: other, to: writer.owner)
        }
        for count in -1...Self.alternatives {
            // Another job may resume an existing `.part`.
            guard let name = count < 0 ? preferred : path.alternative(count),
                try Self.status(name, in: directory, path, files) == nil,
                try Self.status(count < 0 ? name : DownloadPath.partName(of: name), in: directory, path, files) == nil,
                reservations.reserve(path.key(name), for: writer) == nil
            else { continue }
            self.name = name
            return
        }
        throw JobError(
            .exists, "\"\(path.absolute())\" and \(Self.alternatives) names like it are taken; give another path.")
    }

    /// The number of names tried with `exists: "rename"`.
    static let alternatives = 9999

    // MARK: - The existing file

    /// The status of the file with the reserved name, or with `other`; nil if there is none. Blocks.
    func existing(_ other: String? = nil) throws(JobError) -> FileOperations.Status? {
        try Self.status(other ?? name, in: directory, path, files)
    }

    private static func status(
        _ name: String, in directory: OpenFile, _ path: DownloadPath, _ files: FileOperations
    ) throws(JobError) -> FileOperations.Status? {
        do throws(Errno) { return try files.status(directory.descriptor, name) } catch {
            if error == .noSuchFileOrDirectory { return nil }
            throw JobError(path: error, "looked at", path.absolute(name))
        }
    }

    /// Opens the existing file if the caller may read it. Blocks.
    func openExisting() throws(JobError) -> ReadableFile {
        if let file = try ReadableFile(name, in: directory, path, files, transfer.userFiles) { return file }
        throw notRegular(name)
    }

    private func notRegular(_ name: String) -> JobError {
        JobError(.exists, "\"\(path.absolute(name))\" exists but is not a regular file; give another path.")
    }

    /// Throws if the caller may not replace `name`, or if it is a device, a FIFO or a socket. Blocks.
    func checkReplacing(_ name: String) throws(JobError) {
        if let existing = try existing(name), !existing.isRegular, !existing.isSymbolicLink { throw notRegular(name) }
        do throws(Errno) {
            if try path.permitsReplacing(name, in: directory.descriptor, files) { return }
        } catch  where error == .noSuchFileOrDirectory {
            return
        } catch {
            throw JobError(path: error, "looked at", path.absolute(name))
        }
        throw JobError(forbidden: path.absolute(name))
    }

    // MARK: - The .part

    /// The open `.part`; -1 before it is made or reopened.
    var descriptor: Int32 { part.withLock { $0.file?.descriptor ?? -1 } }

    /// Makes an empty `.part`, and unlinks one that an earlier download of the caller left. Blocks.
    ///
    /// The old file is never truncated instead, so no checkpoint of an earlier version matches the new one.
    func makePart() throws(JobError) -> FileOperations.Status.Identity {
        let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW
        let mode = UInt32(path.isPrivate ? 0o600 : 0o644) | (path.owner == nil ? Self.mark : 0)
        do throws(Errno) {
            let file = try open { (former) throws(Errno) in
                do throws(Errno) {
                    return try openPart(flags, mode)
                } catch  where error == .fileExists {
                    // A file system may keep no mark.
                    let isOwn = try former.map { (file) throws(Errno) in try isOpen(file, under: partName) } ?? false
                    guard try isOwn ? true : isAbandoned() else { throw error }
                    do throws(Errno) {
                        try files.unlink(directory.descriptor, partName)
                    } catch  where error == .noSuchFileOrDirectory {}
                    return try openPart(flags, mode)
                }
            }
            if let owner = path.owner {
                try files.setAccessList(file, AccessList([.read, .write], for: [owner]), false)
            }
            return try files.statusOfOpen(file).identity
        } catch  where error == .fileExists {
            throw JobError(
                .exists,
                "\"\(partPath)\" exists and is not of a download of yours; give another path, or move it away.")
        } catch {
            throw JobError(path: error, "written", partPath)
        }
    }

    /// The sticky bit, which means nothing on a file: it tells a `.part` from the caller's own files where the daemon has the
    /// same user.
    private static let mark = UInt32(S_ISVTX)

    /// Whether the existing `.part` is of an earlier download of the caller.
    private func isAbandoned() throws(Errno) -> Bool {
        let directory = directory.descriptor
        guard let owner = path.owner else {
            let status = try files.status(directory, partName)
            return Self.isPart(status) && status.mode & Self.mark != 0
        }
        let (status, isTheirs) = try files.status(partName, in: directory, madeFor: owner)
        return isTheirs && Self.isPart(status)
    }

    /// Whether a file can be a `.part` of this daemon.
    private static func isPart(_ status: FileOperations.Status) -> Bool {
        status.isRegular && status.links == 1 && status.owner == geteuid()
    }

    /// Opens the `.part` that an earlier attempt left, if it is the same file; returns its size. Blocks.
    func reopenPart(of checkpoint: DownloadCheckpoint) -> Int64? {
        guard checkpoint.part.createdAt != 0 else { return nil }
        let file = try? open { _ throws(Errno) in
            let file = try openPart(O_RDWR | O_NOFOLLOW | O_NONBLOCK)
            let status = try files.statusOfOpen(file.descriptor)
            guard status.identity == checkpoint.part, Self.isPart(status) else { throw Errno.fileExists }
            return file
        }
        return file.flatMap { try? files.statusOfOpen($0).size }
    }

    private func openPart(_ flags: Int32, _ mode: UInt32 = 0) throws(Errno) -> OpenFile {
        OpenFile(
            try files.openBeneath(directory.descriptor, partName, flags, mode), files, closedOn: transfer.userFiles)
    }

    /// Takes the file that `body`, which gets the former one, opens for the `.part`; returns its descriptor. Throws if it is no
    /// longer wanted.
    private func open(_ body: (OpenFile?) throws(Errno) -> OpenFile) throws(Errno) -> Int32 {
        try part.withLock { part throws(Errno) in
            guard part.isWanted else { throw Errno.canceled }
            let file = try body(part.file)
            (part.name, part.file) = (partName, file)
            return file.descriptor
        }
    }

    /// Whether `name` is the open `.part`: other writers to the directory can replace it at any time.
    private func isOpen(_ file: OpenFile, under name: String) throws(Errno) -> Bool {
        let named = try files.status(directory.descriptor, name)
        return try named.identity == files.statusOfOpen(file.descriptor).identity
    }

    func cutPart(to size: Int64) throws(JobError) {
        try JobError.naming(partPath, "written") { () throws(Errno) in try files.truncate(descriptor, to: size) }
    }

    /// Unlinks the `.part` of `checkpoint`, if it is still the same file. Blocks.
    static func discardPart(
        _ path: DownloadPath, _ checkpoint: DownloadCheckpoint, _ files: FileOperations
    ) throws(Errno) {
        let name = DownloadPath.partName(of: checkpoint.name)
        do throws(Errno) {
            let directory = try TargetDirectory(path: path, checksCaller: false, files: files).open()
            let status = try files.status(directory.descriptor, name)
            guard isPart(status), status.identity == checkpoint.part else { return }
            try files.unlink(directory.descriptor, name)
        } catch  where error == .noSuchFileOrDirectory {}
    }

    var disk: FileOperations.Disk? { files.disk(directory.descriptor) }

    // MARK: - Ends

    /// Durably gives the complete `.part` its name; false if the name is taken and not to be replaced. Blocks.
    func finish(as name: String, replacing: Bool) throws(JobError) -> Bool {
        if replacing { try checkReplacing(name) }
        do throws(Errno) {
            try part.withLock { part throws(Errno) in
                guard part.isWanted, let old = part.name, let file = part.file else { throw Errno.canceled }
                try files.move(directory.descriptor, old, name, replacing: replacing)
                // A file that has replaced another is not removed any more: both would be lost.
                part.name = replacing ? nil : name
                // Not before: after a crash in between, the next attempt would not know its file.
                if let mode = try? files.statusOfOpen(file.descriptor).mode, mode & Self.mark != 0 {
                    try? files.changeMode(of: file.descriptor, to: mode & ~Self.mark)
                }
                do throws(Errno) {
                    if try isOpen(file, under: name) { return }
                } catch  where error == .noSuchFileOrDirectory {}
                // Another file had the name of the `.part` and got the new one.
                throw Errno.staleNFSFileHandle
            }
            try files.sync(directory.descriptor)
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
        if part.withLock({ exchange(&$0.isWanted, with: false) }) {
            transfer.shared.reservations.release(path.key(name))
        }
    }

    /// Removes the file and the reservation. Blocks.
    func remove() {
        let isFirst = part.withLock { part in
            guard exchange(&part.isWanted, with: false) else { return false }
            if let name = part.name, let file = part.file, (try? isOpen(file, under: name)) == true {
                try? files.unlink(directory.descriptor, name)
            }
            return true
        }
        if isFirst { transfer.shared.reservations.release(path.key(name)) }
    }
}
