import SystemPackage
import Glibc
import JobModel

/// The directory that a download goes to, opened without a way out of its root, and what had to be made for it.
struct TargetDirectory: Sendable {
    let opened: OpenDirectory
    let identity: FileOperations.Status.Identity
    /// The directories that were not there before, outermost first, each by its parent and name.
    private var made: [(parent: OpenDirectory, name: String)] = []
    private let files: FileOperations

    /// Opens the directory of `path`, making what is missing of it. Blocks.
    ///
    /// `existing` is the directory where it was opened before: nothing is opened by its name twice, as the name could
    /// lead to another directory the second time.
    init(_ path: DownloadPath, existing: OpenDirectory?, files: FileOperations) throws(JobError) {
        self.files = files
        do throws(Errno) {
            if let existing {
                opened = existing
            } else {
                opened = try Self.open(path, files, made: &made)
            }
            identity = try files.statusOfOpen(opened.descriptor).identity
        } catch {
            throw JobError(path: error, "opened", path.directory)
        }
    }

    private static func root(of path: DownloadPath, _ files: FileOperations) throws(Errno) -> OpenDirectory {
        do throws(Errno) {
            guard path.isOwnDirectory, path.owner != nil else {
                return OpenDirectory(descriptor: try files.openDirectory(path.root), path: path.root, files: files)
            }
        } catch  where error == .noSuchFileOrDirectory && path.isOwnDirectory {}
        let parent = OpenDirectory(
            descriptor: try madeDirectory(path.rootParent, files), path: path.rootParent, files: files)
        try makeDirectory(path.rootName, in: parent, mode: path.owner == nil ? 0o755 : 0o700, files)
        let root = try open(path.rootName, in: parent, files)
        if let owner = path.owner { try settle(root, owner, files) }
        return root
    }

    /// Makes a caller's directory readable by its owner only. Done each time, as the directory may be older than the
    /// setting, or than this owner of the uid.
    private static func settle(_ root: OpenDirectory, _ owner: UInt32, _ files: FileOperations) throws(Errno) {
        let status = try files.statusOfOpen(root.descriptor)
        if status.mode != 0o700 { try files.changeMode(root.descriptor, 0o700) }
        if status.owner != owner { try files.changeOwner(root.descriptor, owner) }
    }

    /// Opens the directory at an absolute path of the configuration, making it and those above where they are missing.
    private static func madeDirectory(_ path: String, _ files: FileOperations) throws(Errno) -> Int32 {
        do throws(Errno) {
            return try files.openDirectory(path)
        } catch  where error == .noSuchFileOrDirectory {
            guard let slash = path.lastIndex(of: "/"), path != "/" else { throw error }
            let above = slash == path.startIndex ? "/" : String(path[..<slash])
            let parent = OpenDirectory(descriptor: try madeDirectory(above, files), path: above, files: files)
            try makeDirectory(String(path[path.index(after: slash)...]), in: parent, mode: 0o755, files)
            return try files.openDirectory(path)
        }
    }

    /// Makes a directory durably; true where it was not there.
    @discardableResult
    private static func makeDirectory(
        _ name: String, in parent: OpenDirectory, mode: UInt32, _ files: FileOperations
    ) throws(Errno) -> Bool {
        do throws(Errno) {
            try files.makeDirectory(parent.descriptor, name, mode)
        } catch  where error == .fileExists {
            return false
        }
        try files.sync(parent.descriptor)
        return true
    }

    /// The directory of `path` where it is there, without making anything; nil where it is not. Blocks.
    static func existing(_ path: DownloadPath, files: FileOperations) throws(Errno) -> OpenDirectory? {
        do throws(Errno) {
            let root: OpenDirectory
            if path.isOwnDirectory, let owner = path.owner {
                let parent = OpenDirectory(
                    descriptor: try files.openDirectory(path.rootParent), path: path.rootParent, files: files)
                root = try open(path.rootName, in: parent, files)
                try settle(root, owner, files)
            } else {
                root = OpenDirectory(descriptor: try files.openDirectory(path.root), path: path.root, files: files)
            }
            guard !path.directories.isEmpty else { return root }
            return try open(path.directories.joined(separator: "/"), in: root, files)
        } catch  where error == .noSuchFileOrDirectory {
            return nil
        }
    }

    private static func open(
        _ path: DownloadPath, _ files: FileOperations, made: inout [(parent: OpenDirectory, name: String)]
    ) throws(Errno) -> OpenDirectory {
        var directory = try root(of: path, files)
        // Each is opened relative to the open directory above it, which stays the same one even if it is renamed.
        for name in path.directories {
            let parent = directory
            do throws(Errno) {
                directory = try open(name, in: parent, files)
            } catch  where error == .noSuchFileOrDirectory {
                let isNew = try makeDirectory(name, in: parent, mode: 0o755, files)
                directory = try open(name, in: parent, files)
                guard isNew else { continue }
                if let owner = path.owner {
                    // The owner of the directory above can replace the one just made by another; that one then belongs
                    // to them and not to the daemon.
                    let status = try files.statusOfOpen(directory.descriptor)
                    guard status.owner == geteuid() || status.owner == owner else { throw Errno.improperLink }
                    if status.owner != owner { try files.changeOwner(directory.descriptor, owner) }
                }
                made.append((parent, name))
            }
        }
        return directory
    }

    /// Opens a directory below `parent`, through no symbolic link.
    private static func open(
        _ below: String, in parent: OpenDirectory, _ files: FileOperations
    ) throws(Errno) -> OpenDirectory {
        OpenDirectory(
            descriptor: try files.openBeneath(parent.descriptor, below, O_RDONLY | O_DIRECTORY, 0),
            path: parent.path + "/" + below, files: files)
    }

    /// Whether the directory was removed while it was being opened.
    var isGone: Bool { (try? files.statusOfOpen(opened.descriptor).links == 0) ?? false }

    /// Removes the directories that were made here, as far as they are empty.
    func removeMadeDirectories() {
        for (parent, name) in made.reversed() {
            do throws(Errno) {
                try files.removeDirectory(parent.descriptor, name)
            } catch {
                // Something else is in it by now, so it stays, and so do those around it.
                return
            }
        }
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
