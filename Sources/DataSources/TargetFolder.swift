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
    init(_ path: DownloadPath, files: FileOperations) throws(JobError) {
        self.files = files
        do throws(SystemError) {
            let root = try Self.root(of: path, files)
            let below = path.folders.joined(separator: "/")
            if below.isEmpty {
                folder = root
            } else {
                folder = try Self.open(below, in: root, path, files, made: &made)
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
        let root = OpenFolder(
            descriptor: try files.openBeneath(
                parent.descriptor, path.rootName, O_RDONLY | O_DIRECTORY | (path.owner == nil ? 0 : O_NOFOLLOW), 0),
            path: path.root, files: files)
        if let owner = path.owner {
            // Each time, as the folder may be older than the setting or than this owner of the uid.
            let status = try files.statusOfOpen(root.descriptor)
            if status.mode != 0o700 { try files.changeMode(root.descriptor, 0o700) }
            if status.owner != owner { try files.changeOwner(root.descriptor, owner) }
        }
        return root
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

    /// Opens `below` as a whole, so that links within the root are followed, and makes it step by step if need be.
    private static func open(
        _ below: String, in root: OpenFolder, _ path: DownloadPath, _ files: FileOperations,
        made: inout [(parent: OpenFolder, name: String)]
    ) throws(SystemError) -> OpenFolder {
        let flags = O_RDONLY | O_DIRECTORY
        func opened(_ below: String) throws(SystemError) -> OpenFolder {
            OpenFolder(
                descriptor: try files.openBeneath(root.descriptor, below, flags, 0), path: root.path + "/" + below,
                files: files)
        }
        do throws(SystemError) {
            return try opened(below)
        } catch  where error.code == ENOENT {}
        var folder = root
        for count in 1...path.folders.count {
            let below = path.folders[..<count].joined(separator: "/")
            do throws(SystemError) {
                folder = try opened(below)
            } catch  where error.code == ENOENT {
                let name = path.folders[count - 1]
                let isNew = try makeFolder(name, in: folder, mode: 0o755, files)
                let parent = folder
                folder = try opened(below)
                guard isNew else { continue }
                if let owner = path.owner { try files.changeOwner(folder.descriptor, owner) }
                made.append((parent, name))
            }
        }
        return folder
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
            self.init(.policy, "\"\(path)\" leads through a symbolic link out of its folder; give another path.")
        } else {
            self.init(storage: error, action, path)
        }
    }
}
