import Glibc
import JobModel
import SystemPackage

/// The directory of a download or upload, opened from one directory to the next, each checked before it is passed.
struct TargetDirectory {
    let path: DownloadPath
    /// Whether the caller's rights count: not for the daemon itself, which removes its files whatever the caller may do.
    let checksCaller: Bool
    let files: FileOperations

    /// Opens it if the caller has these rights to it. Blocks.
    static func opened(
        _ path: DownloadPath, for rights: AccessList.Rights, makingMissing: Bool = false, _ files: FileOperations
    ) throws(JobError) -> OpenFile {
        let directory = TargetDirectory(path: path, checksCaller: path.owner != nil, files: files)
        do throws(Errno) { return try directory.open(for: rights, makingMissing: makingMissing) } catch {
            // The message does not reveal whether the daemon or the caller lacks the right.
            if error == .permissionDenied, path.owner != nil { throw JobError(forbidden: path.absolute()) }
            throw JobError(path: error, "opened", path.directory)
        }
    }

    /// Blocks.
    func open(for wanted: AccessList.Rights = [], makingMissing: Bool = false) throws(Errno) -> OpenFile {
        var directory = path.isOwnDirectory ? try ownDirectory(makingMissing: makingMissing) : try sharedRoot()
        for name in path.directories {
            try require(.execute, on: directory)
            let parent = directory
            do throws(Errno) {
                directory = try parent.directory(name)
            } catch  where error == .noSuchFileOrDirectory && makingMissing {
                try require([.write, .execute], on: parent)
                directory = try make(name, in: parent)
            }
        }
        try require(wanted, on: directory)
        return directory
    }

    private func require(_ wanted: AccessList.Rights, on directory: OpenFile) throws(Errno) {
        guard checksCaller, try !path.permits(wanted, on: directory.descriptor, files) else { return }
        throw Errno.permissionDenied
    }

    private func open(absolute path: String, flags: Int32 = O_RDONLY) throws(Errno) -> OpenFile {
        OpenFile(try files.openFromRoot(path, flags), files)
    }

    /// Opens a root that the administrator named; callers must be able to reach it with their own rights.
    private func sharedRoot() throws(Errno) -> OpenFile {
        guard checksCaller else { return try open(absolute: path.location.isEmpty ? "/" : path.location) }
        // To pass a directory, the right to list it is not needed.
        var directory = try open(absolute: "/", flags: FileOperations.pathOnly)
        for name in path.location.utf8.split(separator: UInt8(ascii: "/")) {
            try require(.execute, on: directory)
            directory = try directory.directory(String(Substring(name)), flags: FileOperations.pathOnly)
        }
        return try directory.directory(".")
    }

    private func ownDirectory(makingMissing: Bool) throws(Errno) -> OpenFile {
        let directory =
            makingMissing
            ? try openMaking(path.location, mode: path.isPrivate ? 0o700 : 0o755) : try open(absolute: path.location)
        if path.isPrivate { try makePrivate(directory) }
        return directory
    }

    /// Opens the directory at an absolute path, making it and those above.
    private func openMaking(_ path: String, mode: UInt32) throws(Errno) -> OpenFile {
        do throws(Errno) {
            return try open(absolute: path)
        } catch  where error == .noSuchFileOrDirectory {
            guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), path != "/" else { throw error }
            let parent = try openMaking(slash == path.startIndex ? "/" : String(path[..<slash]), mode: 0o755)
            let name = String(path[path.utf8.index(after: slash)...])
            _ = try makeDirectory(name, in: parent, mode: mode)
            return try parent.directory(name)
        }
    }

    /// Gives a directory to its caller alone. Checked each time, as the directory may be older than the setting.
    private func makePrivate(_ directory: OpenFile) throws(Errno) {
        let status = try files.statusOfOpen(directory.descriptor)
        if status.owner != geteuid() { try files.changeOwner(of: directory.descriptor, to: geteuid()) }
        guard let owner = path.owner else {
            if status.mode != 0o700 { try files.changeMode(of: directory.descriptor, to: 0o700) }
            return
        }
        if try files.accessList(of: directory.descriptor) != AccessList(.all, for: [owner]) {
            try giveAccess(to: directory.descriptor, owner)
        }
    }

    /// Files that the caller makes belong to the caller, so the default list names the daemon's user too.
    private func giveAccess(to directory: Int32, _ owner: UInt32) throws(Errno) {
        try files.setAccessList(directory, AccessList(.all, for: [owner]), false)
        try files.setAccessList(directory, AccessList(.all, for: [owner, geteuid()]), true)
    }

    /// Durably makes a directory; false if it existed.
    private func makeDirectory(_ name: String, in parent: OpenFile, mode: UInt32) throws(Errno) -> Bool {
        do throws(Errno) {
            try files.makeDirectory(parent.descriptor, name, mode)
        } catch  where error == .fileExists {
            return false
        }
        try files.sync(parent.descriptor)
        return true
    }

    private func make(_ name: String, in parent: OpenFile) throws(Errno) -> OpenFile {
        let isNew = try makeDirectory(name, in: parent, mode: path.isPrivate ? 0o700 : 0o755)
        let directory = try parent.directory(name)
        guard isNew else { return directory }
        let status = try files.statusOfOpen(directory.descriptor)
        // A user who may write to the parent could have replaced the new directory. Another owner, or a mode that an
        // access list widened, gives that away.
        if path.isPrivate, status.owner != geteuid() || status.mode & 0o077 != 0 { throw Errno.improperLink }
        guard let owner = path.owner else { return directory }
        do throws(Errno) { try giveAccess(to: directory.descriptor, owner) } catch {
            // Later downloads of the caller could not use it.
            try? files.removeDirectory(parent.descriptor, name)
            throw error
        }
        return directory
    }
}

extension JobError {
    /// An action on `path` failed: kind `policy` if a symbolic link led out of the root, otherwise `storage`.
    init(path error: Errno, _ action: String, _ path: String) {
        if error == .improperLink || error == .tooManySymbolicLinkLevels {
            self.init(.policy, "\"\(path)\" leads through a symbolic link; give a path without one.")
        } else {
            self.init(storage: error, action, path)
        }
    }

    /// Runs `body`, whose errors mean that `path` could not be `action`.
    static func naming<Value>(
        _ path: String, _ action: String, _ body: () throws(Errno) -> Value
    ) throws(JobError) -> Value {
        do throws(Errno) { return try body() } catch { throw JobError(path: error, action, path) }
    }
}
