import Glibc
import JobModel

/// The folder that a download goes to, opened without a way out of its root, and what had to be made for it.
struct TargetFolder: Sendable {
    let folder: OpenFolder
    let identity: FileOperations.Status.Identity
    /// The folders that were not there before, outermost first, each by its parent and name.
    private var made: [(parent: OpenFolder, name: String)] = []
    private let files: FileOperations

    /// Opens the folder of `path`, making what is missing of it. Blocks.
    ///
    /// `existing` is the folder where it was opened before: nothing is opened by its name twice, as another could stand
    /// there the second time.
    init(_ path: DownloadPath, existing: OpenFolder?, files: FileOperations) throws(JobError) {
        self.files = files
        do throws(SystemError) {
            if let existing {
                folder = existing
            } else {
                folder = try Self.open(path, files, made: &made)
            }
            identity = try files.statusOfOpen(folder.descriptor).identity
        } catch {
            throw JobError(path: error, "opened", path.folder)
        }
    }

    private static func root(of path: DownloadPath, _ files: FileOperations) throws(SystemError) -> OpenFolder {
        do throws(SystemError) {
            guard path.isOwnFolder, path.owner != nil else {
                return OpenFolder(descriptor: try files.openFolder(path.root), path: path.root, files: files)
            }
        } catch  where error.code == ENOENT && path.isOwnFolder {}
        let parent = OpenFolder(
            descriptor: try madeFolder(path.rootParent, files), path: path.rootParent, files: files)
        try makeFolder(path.rootName, in: parent, mode: path.owner == nil ? 0o755 : 0o700, files)
        let root = try open(path.rootName, in: parent, files)
        if let owner = path.owner { try settle(root, owner, files) }
        return root
    }

    /// Gives a caller's folder to its owner alone: each time, as it may be older than the setting or than this owner of
    /// the uid.
    private static func settle(_ root: OpenFolder, _ owner: UInt32, _ files: FileOperations) throws(SystemError) {
        let status = try files.statusOfOpen(root.descriptor)
        if status.mode != 0o700 { try files.changeMode(root.descriptor, 0o700) }
        if status.owner != owner { try files.changeOwner(root.descriptor, owner) }
    }

    /// Opens the folder at an absolute path of the configuration, making it and those above where they are missing.
    private static func madeFolder(_ path: String, _ files: FileOperations) throws(SystemError) -> Int32 {
        do throws(SystemError) {
            return try files.openFolder(path)
        } catch  where error.code == ENOENT {
            guard let slash = path.lastIndex(of: "/"), path != "/" else { throw error }
            let above = slash == path.startIndex ? "/" : String(path[..<slash])
            let parent = OpenFolder(descriptor: try madeFolder(above, files), path: above, files: files)
            try makeFolder(String(path[path.index(after: slash)...]), in: parent, mode: 0o755, files)
            return try files.openFolder(path)
        }
    }

    /// Makes a folder durably; true where it was not there.
    @discardableResult
    private static func makeFolder(
        _ name: String, in parent: OpenFolder, mode: UInt32, _ files: FileOperations
    ) throws(SystemError) -> Bool {
        do throws(SystemError) {
            try files.makeFolder(parent.descriptor, name, mode)
        } catch  where error.code == EEXIST {
            return false
        }
        try files.sync(parent.descriptor)
        return true
    }

    /// The folder of `path` where it is there, without making anything; nil where it is not. Blocks.
    static func existing(_ path: DownloadPath, files: FileOperations) throws(SystemError) -> OpenFolder? {
        do throws(SystemError) {
            let root: OpenFolder
            if path.isOwnFolder, let owner = path.owner {
                let parent = OpenFolder(
                    descriptor: try files.openFolder(path.rootParent), path: path.rootParent, files: files)
                root = try open(path.rootName, in: parent, files)
                try settle(root, owner, files)
            } else {
                root = OpenFolder(descriptor: try files.openFolder(path.root), path: path.root, files: files)
            }
            guard !path.folders.isEmpty else { return root }
            return try open(path.folders.joined(separator: "/"), in: root, files)
        } catch  where error.code == ENOENT {
            return nil
        }
    }

    private static func open(
        _ path: DownloadPath, _ files: FileOperations, made: inout [(parent: OpenFolder, name: String)]
    ) throws(SystemError) -> OpenFolder {
        var folder = try root(of: path, files)
        // Each from the one above it, which stays what it is, whatever becomes of its name.
        for name in path.folders {
            let parent = folder
            do throws(SystemError) {
                folder = try open(name, in: parent, files)
            } catch  where error.code == ENOENT {
                let isNew = try makeFolder(name, in: parent, mode: 0o755, files)
                folder = try open(name, in: parent, files)
                guard isNew else { continue }
                if let owner = path.owner {
                    // Who owns the folder above can put another in the place of the one just made; no other of theirs
                    // belongs to the daemon.
                    let status = try files.statusOfOpen(folder.descriptor)
                    guard status.owner == geteuid() || status.owner == owner else { throw SystemError(EXDEV) }
                    if status.owner != owner { try files.changeOwner(folder.descriptor, owner) }
                }
                made.append((parent, name))
            }
        }
        return folder
    }

    /// Opens a folder below `parent`, through no symbolic link.
    private static func open(
        _ below: String, in parent: OpenFolder, _ files: FileOperations
    ) throws(SystemError) -> OpenFolder {
        OpenFolder(
            descriptor: try files.openBeneath(parent.descriptor, below, O_RDONLY | O_DIRECTORY, 0),
            path: parent.path + "/" + below, files: files)
    }

    /// Whether the folder was removed while it was being opened.
    var isGone: Bool { (try? files.statusOfOpen(folder.descriptor).links == 0) ?? false }

    /// Removes the folders that were made here, as far as they are empty.
    func removeMadeFolders() {
        for (parent, name) in made.reversed() {
            do throws(SystemError) {
                try files.removeFolder(parent.descriptor, name)
            } catch {
                // Something else is in it by now, so it stays, and so do those around it.
                return
            }
        }
    }
}

extension JobError {
    /// `action` on `path` failed: kind `policy` where a link led out of the root, else `storage`.
    init(path error: SystemError, _ action: String, _ path: String) {
        if error.code == EXDEV || error.code == ELOOP {
            self.init(.policy, "\"\(path)\" leads through a symbolic link; give a path without one.")
        } else {
            self.init(storage: error, action, path)
        }
    }
}
