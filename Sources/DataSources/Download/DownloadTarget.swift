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
    private let key: FileReservations.Key
    private let registry: FileReservations
    private let files: FileOperations

    /// The absolute path of the file.
    var absolutePath: String { path.absolute(name) }

    /// Opens the directory and reserves a name in it: that of `path`, or the next free one. Blocks.
    ///
    /// `existing` is the directory where it was opened before. `preferred` is the name that an earlier attempt chose, which
    /// may be taken again.
    init(
        _ path: DownloadPath, in existing: OpenDirectory?, renaming: Bool, preferred: String?,
        writer: FileReservations.Writer, registry: FileReservations, files: FileOperations
    ) throws(JobError) {
        self.path = path
        self.files = files
        self.registry = registry
        var attempts = 0
        while true {
            let directory = try TargetDirectory(path, existing: attempts == 0 ? existing : nil, files: files)
            let (name, key) = try Self.reserved(path, in: directory, renaming, preferred, writer, registry, files)
            // Another download may have removed the directory, as empty, before the name in it was reserved.
            if directory.isGone, attempts < 8 {
                attempts += 1
                registry.release(key)
                continue
            }
            self.directory = directory
            self.name = name
            self.key = key
            part = ScratchFile(in: directory.opened, files: files)
            return
        }
    }

    private static func reserved(
        _ path: DownloadPath, in directory: TargetDirectory, _ renaming: Bool, _ preferred: String?,
        _ writer: FileReservations.Writer, _ registry: FileReservations, _ files: FileOperations
    ) throws(JobError) -> (String, FileReservations.Key) {
        guard renaming else {
            let key = FileReservations.Key(directory: directory.identity, name: path.name)
            if let other = registry.reserve(key, for: writer) {
                // Nobody is told the id of another user's job.
                let name = other.owner == writer.owner ? "job \(other.job)" : "another job"
                throw JobError(
                    .exists, "\"\(path.absolute())\" is being downloaded by \(name); wait for it, or give another path."
                )
            }
            return (path.name, key)
        }
        for count in -1...Self.alternatives {
            let name = count < 0 ? preferred : count == 0 ? path.name : path.alternative(count)
            guard let name else { continue }
            let key = FileReservations.Key(directory: directory.identity, name: name)
            guard try status(name, in: directory, path, files) == nil, registry.reserve(key, for: writer) == nil else {
                continue
            }
            return (name, key)
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

    /// What is under the name now, or nil. Blocks.
    func existing() throws(JobError) -> FileOperations.Status? {
        try Self.status(name, in: directory, path, files)
    }

    /// Opens what is under the name for reading. Blocks.
    func openExisting() throws(JobError) -> OpenFile {
        do throws(Errno) {
            // Its type is looked at first, as merely opening a device can have an effect.
            if try files.status(directory.opened.descriptor, name).isRegular {
                let descriptor = try files.openBeneath(directory.opened.descriptor, name, O_RDONLY | O_NONBLOCK, 0)
                let file = try OpenFile(descriptor: descriptor, path: absolutePath, files: files)
                if file.isRegular { return file }
            }
        } catch {
            throw JobError(path: error, "read", absolutePath)
        }
        throw JobError(.exists, "\"\(absolutePath)\" is there but no ordinary file; give another path.")
    }

    private var partName: String { name + DownloadPath.partSuffix }

    /// Makes a new, empty `.part`, instead of any other. Blocks.
    ///
    /// It is always a new file, never an old one truncated, so no checkpoint of an earlier version can match it.
    func makePart() throws(JobError) -> FileOperations.Status.Identity {
        do throws(Errno) {
            try part.make(partName, mode: 0o644)
            if let owner = path.owner { try files.changeOwner(part.descriptor, owner) }
            return try files.statusOfOpen(part.descriptor).identity
        } catch {
            throw JobError(path: error, "written", absolutePath + DownloadPath.partSuffix)
        }
    }

    /// Opens the `.part` that an earlier attempt left, where it is that very file; its size. Blocks.
    func reopenPart(_ identity: FileOperations.Status.Identity) -> Int64? {
        guard identity.createdAt != 0, let status = try? files.status(directory.opened.descriptor, partName),
            status.identity == identity, status.isRegular, status.links == 1,
            (try? part.open(partName, flags: O_RDWR | O_NOFOLLOW)) != nil,
            let opened = try? files.statusOfOpen(part.descriptor), opened.identity == identity
        else { return nil }
        return opened.size
    }

    /// Unlinks the `.part` that `checkpoint` is about, where it is still that very file. Blocks.
    static func discardPart(_ path: DownloadPath, _ checkpoint: DownloadCheckpoint, _ files: FileOperations)
        throws(Errno)
    {
        let name = checkpoint.name + DownloadPath.partSuffix
        do throws(Errno) {
            guard let directory = try TargetDirectory.existing(path, files: files),
                try files.status(directory.descriptor, name).identity == checkpoint.part
            else { return }
            try files.unlink(directory.descriptor, name)
        } catch  where error == .noSuchFileOrDirectory {}
    }

    /// Gives the finished `.part` its name, durably; false where there is something and it is not to be replaced.
    /// Blocks.
    func finish(as name: String, replacing: Bool) throws(JobError) -> Bool {
        do throws(Errno) {
            try part.rename(to: name, replacing: replacing)
            try files.sync(directory.opened.descriptor)
            return true
        } catch  where error == .fileExists && !replacing {
            return false
        } catch {
            throw JobError(path: error, "put in its place", path.absolute(name))
        }
    }

    /// Ends the reservation and leaves the file as it is.
    func release() {
        if part.keep() { registry.release(key) }
    }

    /// Leaves nothing behind: neither file nor directory nor reservation. May come from any thread.
    func remove() {
        guard part.remove() else { return }
        registry.release(key, thenIfDirectoryIsUnused: directory.removeMadeDirectories)
    }
}
