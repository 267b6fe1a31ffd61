import SystemPackage
import Glibc
import JobModel

/// The directory that a download goes to, opened without a way out of its root, and what had to be made for it.
struct TargetDirectory: Sendable {
    /// Directories that were not there before, outermost first.
    struct Made: Sendable {
        /// What the first was made in. The others are found from there, so that no more of them are kept open.
        let base: OpenDirectory
        /// The place of the first among those of the path.
        let first: Int
        var identities: [FileOperations.Status.Identity] = []
    }

    let opened: OpenDirectory
    private let path: DownloadPath
    private let made: Made?
    private let files: FileOperations

    /// How often the way is gone again where others remove directories on it.
    private static let mostWalks = 8

    /// Opens the directory of `path`, making what is missing of it. Blocks.
    ///
    /// `existing` is the directory where it was opened before: nothing is opened by its name twice, as the name could
    /// lead to another directory the second time.
    init(
        _ path: DownloadPath, existing: OpenDirectory?, registry: FileReservations, files: FileOperations
    ) throws(JobError) {
        self.path = path
        self.files = files
        let rights = CallerRights(of: path, files)
        var walks = 0
        while true {
            var way = DirectoryWay(path, rights: rights, files: files)
            walks += 1
            do throws(Errno) {
                let found: OpenDirectory? = if let existing { existing } else { try way.open(makingMissing: true) }
                guard let found else { throw Errno.noSuchFileOrDirectory }
                opened = found
                made = way.made
                return
            } catch {
                way.made?.remove(path, files, registry)
                // Another download may have removed a directory, as empty, when this had passed it.
                if error == .noSuchFileOrDirectory, way.isInside, walks < Self.mostWalks { continue }
                throw way.error(error)
            }
        }
    }

    /// The directory of `path` where it is there, without making anything; nil where it is not. The caller needs these rights
    /// to it. Blocks.
    static func existing(
        _ path: DownloadPath, for rights: AccessList.Rights = [.write, .execute], files: FileOperations
    ) throws(JobError) -> OpenDirectory? {
        var way = DirectoryWay(path, rights: CallerRights(of: path, files), files: files)
        do throws(Errno) {
            return try way.open(makingMissing: false, for: rights)
        } catch {
            throw way.error(error)
        }
    }

    /// The same for the daemon itself, which removes what it left there whatever the caller may do by now.
    static func existingForCleanUp(_ path: DownloadPath, files: FileOperations) throws(Errno) -> OpenDirectory? {
        var way = DirectoryWay(path, rights: nil, files: files)
        return try way.open(makingMissing: false)
    }

    /// Removes the directories that were made here, as far as they are empty and nobody is about to write into them. Blocks.
    func removeMadeDirectories(_ registry: FileReservations) { made?.remove(path, files, registry) }
}

extension TargetDirectory.Made {
    /// Removes them, as far as they are empty and no download has reserved a name in them, which need not be there yet. Blocks.
    fileprivate func remove(_ path: DownloadPath, _ files: FileOperations, _ registry: FileReservations) {
        for (count, identity) in zip(first..., identities).reversed() {
            guard !registry.uses(path.key(count + 1)),
                (try? remove(path.directories[first...count], identity, files)) != nil
            else { return }
        }
    }

    /// Removes the directory that these names lead to, where it is still the one that was made and nothing is in it.
    private func remove(
        _ names: ArraySlice<String>, _ identity: FileOperations.Status.Identity, _ files: FileOperations
    ) throws(Errno) {
        let above = names.count > 1 ? names.dropLast().joined(separator: "/") : "."
        let parent = OpenDirectory(
            descriptor: try files.openBeneath(base.descriptor, above, O_RDONLY | O_DIRECTORY, 0), path: above,
            files: files)
        let name = names[names.endIndex - 1]
        // A user who may write to the parent directory could have replaced it.
        guard try files.status(parent.descriptor, name).identity == identity else { throw Errno.fileExists }
        try files.removeDirectory(parent.descriptor, name)
    }
}

/// The way to the directory of a file, walked from one open directory to the next, each looked at before it is passed.
///
/// Each is opened relative to the open directory above it, which stays the same one even if it is renamed.
private struct DirectoryWay {
    fileprivate(set) var made: TargetDirectory.Made?
    private let path: DownloadPath
    private let rights: CallerRights?
    private let files: FileOperations
    /// Whether it ended where the caller may not go on.
    private var isForbidden = false
    /// Whether the user's own directory, or the shared root, was reached; no download removes that one.
    private(set) var isInside = false

    init(_ path: DownloadPath, rights: CallerRights?, files: FileOperations) {
        self.path = path
        self.rights = rights
        self.files = files
    }

    /// What the failure of ``open(makingMissing:)`` is to the caller.
    func error(_ error: Errno) -> JobError {
        isForbidden ? JobError(forbidden: path.absolute()) : JobError(path: error, "opened", path.directory)
    }

    /// Nil where it is not there and is not to be made.
    mutating func open(
        makingMissing: Bool, for wanted: AccessList.Rights = [.write, .execute]
    ) throws(Errno) -> OpenDirectory? {
        do throws(Errno) {
            var directory =
                path.isOwnDirectory ? try ownDirectory(makingMissing: makingMissing) : try sharedRoot()
            isInside = true
            for (index, name) in path.directories.enumerated() {
                try require(.execute, on: directory)
                let parent = directory
                do throws(Errno) {
                    directory = try open(name, in: parent)
                    // Somebody else made it meanwhile, and what it lies in is of use to them.
                    made = nil
                } catch  where error == .noSuchFileOrDirectory && makingMissing {
                    try require([.write, .execute], on: parent)
                    if made == nil { made = TargetDirectory.Made(base: parent, first: index) }
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

    /// Opens a directory below `parent`, through no symbolic link.
    private func open(
        _ name: String, in parent: OpenDirectory, flags: Int32 = O_RDONLY
    ) throws(Errno) -> OpenDirectory {
        OpenDirectory(
            descriptor: try files.openBeneath(parent.descriptor, name, flags | O_DIRECTORY, 0),
            path: parent.path + "/" + name, files: files)
    }

    /// A root that the administrator named. The caller must be able to reach it by themselves.
    private mutating func sharedRoot() throws(Errno) -> OpenDirectory {
        guard rights != nil else { return try open(absolute: path.location) }
        // Passing a directory takes no right to list it.
        var directory = OpenDirectory(
            descriptor: try files.openFromRoot("/", FileOperations.pathOnly), path: "", files: files)
        for name in path.location.utf8.split(separator: UInt8(ascii: "/")) {
            try require(.execute, on: directory)
            directory = try open(String(Substring(name)), in: directory, flags: FileOperations.pathOnly)
        }
        return OpenDirectory(
            descriptor: try files.openBeneath(directory.descriptor, ".", O_RDONLY | O_DIRECTORY, 0), path: path.root,
            files: files)
    }

    private func open(absolute path: String) throws(Errno) -> OpenDirectory {
        OpenDirectory(descriptor: try files.openFromRoot(path, O_RDONLY), path: path, files: files)
    }

    // MARK: The caller's own directory

    private func ownDirectory(makingMissing: Bool) throws(Errno) -> OpenDirectory {
        let directory: OpenDirectory
        if makingMissing {
            directory = try openMaking(path.location, mode: path.isPrivate ? 0o700 : 0o755)
        } else {
            directory = try open(absolute: path.location)
        }
        if path.isPrivate { try settle(directory) }
        return directory
    }

    /// Opens the directory at an absolute path, making it and those above where they are missing.
    private func openMaking(_ path: String, mode: UInt32) throws(Errno) -> OpenDirectory {
        do throws(Errno) {
            return try open(absolute: path)
        } catch  where error == .noSuchFileOrDirectory {
            guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), path != "/" else { throw error }
            let above = slash == path.startIndex ? "/" : String(path[..<slash])
            let name = String(path[path.utf8.index(after: slash)...])
            let parent = try openMaking(above, mode: 0o755)
            try makeDirectory(name, in: parent, mode: mode)
            return try open(name, in: parent)
        }
    }

    /// Makes a caller's directory theirs and nobody else's. Looked at each time, as the directory may be older than the
    /// setting.
    private func settle(_ directory: OpenDirectory) throws(Errno) {
        let status = try files.statusOfOpen(directory.descriptor)
        if status.owner != geteuid() { try files.changeOwner(directory.descriptor, geteuid()) }
        guard let owner = path.owner else {
            if status.mode != 0o700 { try files.changeMode(directory.descriptor, 0o700) }
            return
        }
        if try files.accessList(directory.descriptor) != AccessList(.all, for: [owner]) {
            try giveAccess(to: directory.descriptor, owner)
        }
    }

    /// What the caller makes in it belongs to them, so the default list names the daemon's user too.
    private func giveAccess(to directory: Int32, _ owner: UInt32) throws(Errno) {
        try files.setAccessList(directory, AccessList(.all, for: [owner]), false)
        try files.setAccessList(directory, AccessList(.all, for: [owner, geteuid()]), true)
    }

    // MARK: What is made

    /// Makes a directory durably; true where it was not there.
    @discardableResult
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
        let directory = try open(name, in: parent)
        guard isNew else {
            made = nil
            return directory
        }
        let status = try files.statusOfOpen(directory.descriptor)
        // Who may write above it can replace the one just made by another. That one is not the daemon's, or already somebody's,
        // which its mode shows: it gets what the access list lets the group do.
        if path.isPrivate, status.owner != geteuid() || status.mode & 0o077 != 0 { throw Errno.improperLink }
        made?.identities.append(status.identity)
        if let owner = path.owner { try giveAccess(to: directory.descriptor, owner) }
        return directory
    }
}

extension JobError {
    /// `action` on `path` failed: kind `policy` where a link led out of the root, else `storage`.
    init(path error: Errno, _ action: String, _ path: String) {
        if error == .improperLink || error == .tooManySymbolicLinkLevels {
            self.init(.policy, "\"\(path)\" leads through a symbolic link; give a path without one.")
        } else {
            self.init(storage: error, action, path)
        }
    }
}
