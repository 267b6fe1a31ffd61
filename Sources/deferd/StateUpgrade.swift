import CLinux
import DataSources
import Glibc
import Logging
import SystemPackage

/// Gives the state directory of a daemon that root ran to the user that the daemon runs as from now on; run by root before each
/// start, and done once: a directory that is not root's any more is left alone, as whoever has it decides what is in it. One
/// that is not there is made.
///
/// The daemon's own files become that user's. So do the callers' directories below `downloads`, each named by its caller's
/// uid, and what is in them; an access list lets the caller go on. Callers own what they walk in here and may swap it while
/// it is walked: each directory and file is opened below the one above, through no link, and changed by its descriptor. What
/// is neither theirs nor shared with them already stays as it is: they could have moved it there.
struct StateUpgrade {
    /// Of directories in directories; each costs a descriptor.
    private static let deepest = 128
    /// Others pass through to their own directories, but cannot look around.
    private static let mode: UInt32 = 0o711

    private let state: String
    private let downloads: String
    private let uid: UInt32
    private let gid: UInt32
    private let logger: Logger
    private let files = FileOperations.real

    init(state: String, downloads: String, user: String, logger: Logger) throws(Daemon.StartError) {
        guard let entry = getpwnam(user) else {
            throw Daemon.StartError(
                code: .configuration, message: "There is no user \(user); make it, as systemd-sysusers does.")
        }
        self.state = state
        self.downloads = downloads
        uid = entry.pointee.pw_uid
        gid = entry.pointee.pw_gid
        self.logger = logger
    }

    func run() throws(Daemon.StartError) {
        do throws(Errno) {
            try upgrade()
        } catch {
            throw Daemon.StartError(
                code: .tryAgain, message: "The state directory \(state) cannot be given to its new user: \(error).")
        }
    }

    private func upgrade() throws(Errno) {
        let root = try opened()
        defer { files.close(root) }
        guard try files.statusOfOpen(root).owner == 0 else { return }
        var failure: Errno?
        for name in try names(in: root) where Self.isOwn(name) {
            failure = give("\(state)/\(name)", name, in: root, depth: 0, to: nil) ?? failure
        }
        // All of it is tried again at the next start.
        if let failure { throw failure }
        do throws(Errno) {
            let directory = try openedDownloads(root)
            defer { files.close(directory) }
            for name in try names(in: directory) {
                // Another name is no caller's directory.
                guard let caller = UInt32(name), String(caller) == name else { continue }
                // What is not given away of a caller's keeps nobody else waiting.
                _ = give("\(downloads)/\(name)", name, in: directory, depth: 0, to: caller)
            }
            let owner = try files.statusOfOpen(directory).owner
            if owner == 0 { try own(directory) }
        } catch  where error == .noSuchFileOrDirectory {}
        try files.changeMode(root, Self.mode)
        // The last thing, as it says that all is done.
        try own(root)
        try files.sync(root)
    }

    /// Whether the daemon makes something of that name in its state directory. Whatever else is there is not its to give.
    private static func isOwn(_ name: String) -> Bool {
        name.hasPrefix("deferd.") || name == "bodies" || name == "programs"
    }

    /// The state directory, made where it is missing.
    private func opened() throws(Errno) -> Int32 {
        let path = FileOperations.resolved(state)
        do throws(Errno) {
            return try files.openFromRoot(path, O_RDONLY)
        } catch  where error == .noSuchFileOrDirectory {
            guard let slash = path.lastIndex(of: "/") else { throw error }
            let above = slash == path.startIndex ? "/" : String(path[..<slash])
            let name = String(path[path.index(after: slash)...])
            let parent = try files.openFromRoot(above, O_RDONLY)
            defer { files.close(parent) }
            // Where others may write nothing of root's is made.
            let status = try files.statusOfOpen(parent)
            guard status.owner == 0, status.mode & 0o022 == 0 else { throw Errno.permissionDenied }
            try files.makeDirectory(parent, name, 0o700)
            return try files.openBeneath(parent, name, O_RDONLY | O_DIRECTORY, 0)
        }
    }

    /// The directory of downloads; through no link where it lies in the state directory.
    private func openedDownloads(_ root: Int32) throws(Errno) -> Int32 {
        guard downloads.hasPrefix(state + "/") else {
            return try files.openFromRoot(FileOperations.resolved(downloads), O_RDONLY)
        }
        return try files.openBeneath(root, String(downloads.dropFirst(state.count + 1)), O_RDONLY | O_DIRECTORY, 0)
    }

    /// Gives a file or directory, and what is in it, to the daemon's user, and lets `caller` go on with it. Gives why that could
    /// not be done, for whatever is not to be left alone.
    private func give(_ path: String, _ name: String, in directory: Int32, depth: Int, to caller: UInt32?) -> Errno? {
        do throws(Errno) {
            let status = try files.status(directory, name)
            let isSound = status.isDirectory ? depth < Self.deepest : status.isRegular && status.links == 1
            guard isSound else {
                warnOfLeaving(path)
                return nil
            }
            let flags = status.isDirectory ? O_RDONLY | O_DIRECTORY : O_RDONLY | O_NONBLOCK | O_NOFOLLOW
            let file = try files.openBeneath(directory, name, flags, 0)
            defer { files.close(file) }
            let opened = try files.statusOfOpen(file)
            // Another than the one that was looked at.
            guard opened.identity == status.identity, status.isDirectory || opened.links == 1 else {
                throw Errno.staleNFSFileHandle
            }
            guard try isTheirs(file, opened, caller) else {
                warnOfLeaving(path)
                return nil
            }
            if let caller {
                // First, as without it the caller must stay the owner.
                let rights: AccessList.Rights = status.isDirectory ? .all : [.read, .write]
                try files.setAccessList(file, AccessList(rights, for: [caller]), false)
                if status.isDirectory { try files.setAccessList(file, AccessList(rights, for: [caller, uid]), true) }
            }
            try own(file)
            guard status.isDirectory else { return nil }
            var failure: Errno?
            for name in try names(in: file) {
                failure = give("\(path)/\(name)", name, in: file, depth: depth + 1, to: caller) ?? failure
            }
            return failure
        } catch  where error == .noSuchFileOrDirectory {
            return nil
        } catch {
            logger.warning(
                "It is not given to the daemon's user; mend what is wrong, give the state directory back to root, and restart.",
                metadata: ["path": "\(path)", "error": "\(error)"])
            return error
        }
    }

    private func warnOfLeaving(_ path: String) {
        logger.warning(
            "It is not given to the daemon's user, as it is a link, special, too deep or somebody else's.",
            metadata: ["path": "\(path)"])
    }

    /// Whether a file is the daemon's, or the caller's; of root's and of the daemon's own user's that which names the caller.
    private func isTheirs(
        _ file: Int32, _ status: FileOperations.Status, _ caller: UInt32?
    ) throws(Errno) -> Bool {
        let isDaemons = status.owner == 0 || status.owner == uid
        guard let caller else { return isDaemons }
        if status.owner == caller { return true }
        guard isDaemons, let list = try files.accessList(file) else { return false }
        return list.entries.contains { $0.tag == .user && $0.id == caller }
    }

    private func own(_ file: Int32) throws(Errno) {
        guard fchown(file, uid, gid) == 0 else { throw Errno(rawValue: errno) }
    }

    private func names(in directory: Int32) throws(Errno) -> [String] {
        // One of its own, as closing the listing closes its descriptor.
        let descriptor = try files.openBeneath(directory, ".", O_RDONLY | O_DIRECTORY, 0)
        guard let listing = fdopendir(descriptor) else {
            files.close(descriptor)
            throw Errno(rawValue: errno)
        }
        defer { closedir(listing) }
        var names: [String] = []
        while let entry = readdir(listing) {
            let name = String(cString: deferd_entry_name(entry))
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}
