import Glibc
import JobModel
import SystemPackage

/// The open directory of a download, and the directories that were made for it.
struct TargetDirectory: Sendable {
    let opened: OpenDirectory
    private let made: MadeDirectories?
    private let reservations: FileReservations

    /// The number of attempts while others remove directories on the way.
    private static let mostWalks = 8

    /// Opens the directory of `path`, making missing directories. Blocks.
    init(_ path: DownloadPath, _ reservations: FileReservations, _ files: FileOperations) throws(JobError) {
        self.reservations = reservations
        let rights = CallerRights(of: path, files)
        var walks = 0
        while true {
            var way = DirectoryWay(path, rights, files)
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
        _ path: DownloadPath, for rights: AccessList.Rights = [.write, .execute], files: FileOperations
    ) throws(JobError) -> OpenDirectory? {
        var way = DirectoryWay(path, CallerRights(of: path, files), files)
        do throws(Errno) {
            return try way.open(makingMissing: false, for: rights)
        } catch {
            throw way.error(error)
        }
    }

    /// Opens the directory for the daemon itself, which removes its files whatever the caller may do. Blocks.
    static func existingForCleanUp(_ path: DownloadPath, files: FileOperations) throws(Errno) -> OpenDirectory? {
        var way = DirectoryWay(path, nil, files)
        return try way.open(makingMissing: false)
    }

    /// Removes the directories that were made, unless they are in use. Blocks.
    func removeMadeDirectories() { made?.remove(reservations) }
}

/// Directories of a path that a download made, outermost first.
private struct MadeDirectories: Sendable {
    let path: DownloadPath
    /// The directory in which the first was made; the others are found from there.
    let base: OpenDirectory
    /// The index of the first among the directories of the path.
    let first: Int
    let files: FileOperations
    var identities: [FileOperations.Status.Identity] = []

    /// Removes them, as far as they are empty and no download has reserved a name in them. Blocks.
    func remove(_ reservations: FileReservations) {
        for (count, identity) in zip(first..., identities).reversed() {
            guard !reservations.uses(path.key(count + 1)),
                (try? remove(path.directories[first...count], identity)) != nil
            else { return }
        }
    }

    private func remove(
        _ names: ArraySlice<String>, _ identity: FileOperations.Status.Identity
    ) throws(Errno) {
        let parent = try base.open(names.count > 1 ? names.dropLast().joined(separator: "/") : ".")
        let name = names[names.endIndex - 1]
        // A user who may write to the parent directory could have replaced it.
        guard try files.status(parent.descriptor, name).identity == identity else { throw Errno.fileExists }
        try files.removeDirectory(parent.descriptor, name)
    }
}

/// The way to the directory of a file, from one open directory to the next, each checked before it is passed.
private struct DirectoryWay {
    private(set) var made: MadeDirectories?
    private let path: DownloadPath
    private let rights: CallerRights?
    private let files: FileOperations
    /// Whether the caller lacked a right on the way.
    private var isForbidden = false
    /// Whether the root was reached, which no download removes.
    private(set) var isInside = false

    init(_ path: DownloadPath, _ rights: CallerRights?, _ files: FileOperations) {
        self.path = path
        self.rights = rights
        self.files = files
    }

    /// The error to report for a failure of ``open(makingMissing:for:)``.
    func error(_ error: Errno) -> JobError {
        isForbidden ? JobError(forbidden: path.absolute()) : JobError(path: error, "opened", path.directory)
    }

    /// Opens the directory; nil if it is missing and not to be made.
    mutating func open(
        makingMissing: Bool, for wanted: AccessList.Rights = [.write, .execute]
    ) throws(Errno) -> OpenDirectory? {
        do throws(Errno) {
            var directory = path.isOwnDirectory ? try ownDirectory(makingMissing: makingMissing) : try sharedRoot()
            isInside = true
            for (index, name) in path.directories.enumerated() {
                try require(.execute, on: directory)
                let parent = directory
                do throws(Errno) {
                    directory = try parent.open(name)
                    // Another download made this one and needs those above it.
                    made = nil
                } catch  where error == .noSuchFileOrDirectory && makingMissing {
                    try require([.write, .execute], on: parent)
                    if made == nil { made = MadeDirectories(path: path, base: parent, first: index, files: files) }
                    directory = try make(name, in: parent)
                }
            }
            try require(wanted, on: directory)
            return directory
        } catch  where error == .noSuchFileOrDirectory && !makingMissing {
            return nil
        }
    }

    private mutating func require(_ wanted: AccessList.Rights, on directory: OpenDirectory) throws(Errno) {
        guard let rights, try !rights.permit(wanted, on: directory.descriptor) else { return }
        isForbidden = true
        throw Errno.permissionDenied
    }

    private func open(absolute path: String, flags: Int32 = O_RDONLY) throws(Errno) -> OpenDirectory {
        OpenDirectory(try files.openFromRoot(path, flags), files)
    }

    /// Opens a root that the administrator named; callers must be able to reach it with their own rights.
    private mutating func sharedRoot() throws(Errno) -> OpenDirectory {
        guard rights != nil else { return try open(absolute: path.location) }
        // To pass a directory, the right to list it is not needed.
        var directory = try open(absolute: "/", flags: FileOperations.pathOnly)
        for name in path.location.utf8.split(separator: UInt8(ascii: "/")) {
            try require(.execute, on: directory)
            directory = try directory.open(String(Substring(name)), flags: FileOperations.pathOnly)
        }
        return try directory.open(".")
    }

    // MARK: - The caller's own directory

    private func ownDirectory(makingMissing: Bool) throws(Errno) -> OpenDirectory {
        let directory =
            makingMissing
            ? try openMaking(path.location, mode: path.isPrivate ? 0o700 : 0o755) : try open(absolute: path.location)
        if path.isPrivate { try makePrivate(directory) }
        return directory
    }

    /// Opens the directory at an absolute path, making it and those above.
    private func openMaking(_ path: String, mode: UInt32) throws(Errno) -> OpenDirectory {
        do throws(Errno) {
            return try open(absolute: path)
        } catch  where error == .noSuchFileOrDirectory {
            guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), path != "/" else { throw error }
            let parent = try openMaking(slash == path.startIndex ? "/" : String(path[..<slash]), mode: 0o755)
            let name = String(path[path.utf8.index(after: slash)...])
            _ = try makeDirectory(name, in: parent, mode: mode)
            return try parent.open(name)
        }
    }

    /// Gives a directory to its caller alone. Checked each time, as the directory may be older than the setting.
    private func makePrivate(_ directory: OpenDirectory) throws(Errno) {
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
    private func makeDirectory(_ name: String, in parent: OpenDirectory, mode: UInt32) throws(Errno) -> Bool {
        do throws(Errno) {
            try files.makeDirectory(parent.descriptor, name, mode)
        } catch  where error == .fileExists {
            return false
        }
        try files.sync(parent.descriptor)
        return true
    }

    private mutating func make(_ name: String, in parent: OpenDirectory) throws(Errno) -> OpenDirectory {
        let isNew = try makeDirectory(name, in: parent, mode: path.isPrivate ? 0o700 : 0o755)
        let directory = try parent.open(name)
        guard isNew else {
            made = nil
            return directory
        }
        let status = try files.statusOfOpen(directory.descriptor)
        // A user who may write to the parent could have replaced the new directory. Another owner, or a mode that an
        // access list widened, gives that away.
        if path.isPrivate, status.owner != geteuid() || status.mode & 0o077 != 0 { throw Errno.improperLink }
        made?.identities.append(status.identity)
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
}
