import Glibc
import JobModel
import SystemPackage

/// The open directory of a download, and the directories that were made for it.
struct TargetDirectory: Sendable {
    let opened: OpenFile
    private let path: DownloadPath
    private let made: MadeDirectories?
    private let reservations: FileReservations
    private let files: FileOperations

    /// The number of attempts while others remove directories on the way.
    private static let mostWalks = 8

    /// Opens the directory of `path`, making missing directories. Blocks.
    init(_ path: DownloadPath, _ reservations: FileReservations, _ files: FileOperations) throws(JobError) {
        self.path = path
        self.reservations = reservations
        self.files = files
        let rights = CallerRights(of: path, files)
        var walks = 0
        while true {
            var way = DirectoryWay(path: path, rights: rights, files: files)
            walks += 1
            do throws(Errno) {
                guard let found = try way.open(makingMissing: true) else { throw Errno.noSuchFileOrDirectory }
                opened = found
                made = way.made
                return
            } catch {
                way.made?.remove(reservations)
                // Another download may have removed a directory that it had made.
                if error == .noSuchFileOrDirectory, way.isInside, walks < Self.mostWalks { continue }
                throw way.error(error)
            }
        }
    }

    /// Opens the directory of `path` if it exists and the caller has these rights to it. Blocks.
    static func existing(
        _ path: DownloadPath, for rights: AccessList.Rights, files: FileOperations
    ) throws(JobError) -> OpenFile? {
        var way = DirectoryWay(path: path, rights: CallerRights(of: path, files), files: files)
        do throws(Errno) {
            return try way.open(makingMissing: false, for: rights)
        } catch {
            throw way.error(error)
        }
    }

    /// Opens the directory for the daemon itself, which removes its files whatever the caller may do. Blocks.
    static func existingForCleanUp(_ path: DownloadPath, files: FileOperations) throws(Errno) -> OpenFile? {
        var way = DirectoryWay(path: path, rights: nil, files: files)
        return try way.open(makingMissing: false)
    }

    /// The status of a name in the directory; nil if there is no such file. Blocks.
    func status(_ name: String) throws(JobError) -> FileOperations.Status? {
        do throws(Errno) {
            return try files.status(opened.descriptor, name)
        } catch  where error == .noSuchFileOrDirectory {
            return nil
        } catch {
            throw JobError(path: error, "looked at", path.absolute(name))
        }
    }

    /// The number of names tried with `exists: "rename"`.
    static let alternatives = 9999

    /// Reserves the name of the path, or a free one, if possible `preferred`. Blocks.
    func reserveName(
        for writer: FileReservations.Writer, renaming: Bool, preferred: String?
    ) throws(JobError) -> String {
        guard renaming else {
            guard let other = reservations.reserve(path.key(path.name), for: writer) else { return path.name }
            // The message does not reveal the id of another user's job.
            let state = other.owner == writer.owner ? "downloaded by job \(other.job)" : "written by another job"
            throw JobError(
                .exists, "\"\(path.absolute())\" is being \(state); wait for that job, or give another path.")
        }
        for count in -1...Self.alternatives {
            let name = count < 0 ? preferred : path.alternative(count)
            if let name, try status(name) == nil, reservations.reserve(path.key(name), for: writer) == nil {
                return name
            }
        }
        throw JobError(
            .exists, "\"\(path.absolute())\" and \(Self.alternatives) names like it are taken; give another path.")
    }

    /// Removes the directories that were made, unless they are in use. Blocks.
    func removeMadeDirectories() { made?.remove(reservations) }
}

/// Directories of a path that a download made, outermost first.
private struct MadeDirectories: Sendable {
    let path: DownloadPath
    /// The directory in which the first was made; the others are found from there.
    let base: OpenFile
    /// The index of the first among the directories of the path.
    let first: Int
    let files: FileOperations
    var count = 0

    /// Removes them, as far as they are empty and no download has reserved a name in them. Blocks.
    func remove(_ reservations: FileReservations) {
        for index in (first..<first + count).reversed() {
            let above = path.directories[first..<index].joined(separator: "/")
            guard !reservations.uses(path.key(index + 1)),
                let parent = try? base.directory(above.isEmpty ? "." : above),
                (try? files.removeDirectory(parent.descriptor, path.directories[index])) != nil
            else { return }
        }
    }
}

/// The way to the directory of a file, from one open directory to the next, each checked before it is passed.
private struct DirectoryWay {
    let path: DownloadPath
    /// Nil for the daemon itself.
    let rights: CallerRights?
    let files: FileOperations
    private(set) var made: MadeDirectories?
    /// Whether the root was reached, which no download removes.
    private(set) var isInside = false

    /// The error to report for a failure of ``open(makingMissing:for:)``.
    func error(_ error: Errno) -> JobError {
        // The message does not reveal whether the daemon or the caller lacks the right.
        error == .permissionDenied && path.owner != nil
            ? JobError(forbidden: path.absolute()) : JobError(path: error, "opened", path.directory)
    }

    /// Opens the directory; nil if it is missing and not to be made.
    mutating func open(
        makingMissing: Bool, for wanted: AccessList.Rights = [.write, .execute]
    ) throws(Errno) -> OpenFile? {
        do throws(Errno) {
            var directory = path.isOwnDirectory ? try ownDirectory(makingMissing: makingMissing) : try sharedRoot()
            isInside = true
            for (index, name) in path.directories.enumerated() {
                try require(.execute, on: directory)
                let parent = directory
                do throws(Errno) {
                    directory = try parent.directory(name)
                    // Another download made this one and needs those above it.
                    made = nil
                } catch  where error == .noSuchFileOrDirectory && makingMissing {
                    try require([.write, .execute], on: parent)
                    made = made ?? MadeDirectories(path: path, base: parent, first: index, files: files)
                    directory = try make(name, in: parent)
                }
            }
            try require(wanted, on: directory)
            return directory
        } catch  where error == .noSuchFileOrDirectory && !makingMissing {
            return nil
        }
    }

    private func require(_ wanted: AccessList.Rights, on directory: OpenFile) throws(Errno) {
        if let rights, try !rights.permit(wanted, on: directory.descriptor) { throw Errno.permissionDenied }
    }

    private func open(absolute path: String, flags: Int32 = O_RDONLY) throws(Errno) -> OpenFile {
        OpenFile(try files.openFromRoot(path, flags), files)
    }

    /// Opens a root that the administrator named; callers must be able to reach it with their own rights.
    private func sharedRoot() throws(Errno) -> OpenFile {
        guard rights != nil else { return try open(absolute: path.location.isEmpty ? "/" : path.location) }
        // To pass a directory, the right to list it is not needed.
        var directory = try open(absolute: "/", flags: FileOperations.pathOnly)
        for name in path.location.utf8.split(separator: UInt8(ascii: "/")) {
            try require(.execute, on: directory)
            directory = try directory.directory(String(Substring(name)), flags: FileOperations.pathOnly)
        }
        return try directory.directory(".")
    }

    // MARK: - The caller's own directory

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

    // MARK: - Missing directories

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

    private mutating func make(_ name: String, in parent: OpenFile) throws(Errno) -> OpenFile {
        let isNew = try makeDirectory(name, in: parent, mode: path.isPrivate ? 0o700 : 0o755)
        let directory = try parent.directory(name)
        guard isNew else {
            made = nil
            return directory
        }
        let status = try files.statusOfOpen(directory.descriptor)
        // A user who may write to the parent could have replaced the new directory. Another owner, or a mode that an
        // access list widened, gives that away.
        if path.isPrivate, status.owner != geteuid() || status.mode & 0o077 != 0 { throw Errno.improperLink }
        made?.count += 1
        if let owner = path.owner { try giveAccess(to: directory.descriptor, owner) }
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
