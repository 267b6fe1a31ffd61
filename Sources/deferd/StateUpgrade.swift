import CLinux
import DataSources
import Glibc
import Logging
import SystemPackage

/// Gives the state directory of a daemon that root ran to the user that the daemon runs as from now on; run by root, once.
///
/// The daemon's own files become that user's. So do the callers' directories below `downloads`, each named by its caller's
/// uid, and what is in them; an access list lets the caller go on. Callers own what they walk in here and may swap it while
/// it is walked: each directory and file is opened below the one above, through no link, and changed by its descriptor.
struct StateUpgrade {
    /// Says that it was done.
    private static let marker = "deferd.upgraded"
    /// Of directories in directories; each costs a descriptor.
    private static let deepest = 128

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
        self.state = FileOperations.resolved(state)
        self.downloads = FileOperations.resolved(downloads)
        uid = entry.pointee.pw_uid
        gid = entry.pointee.pw_gid
        self.logger = logger
    }

    func run() throws(Daemon.StartError) {
        do throws(Errno) {
            try upgrade()
        } catch  where error == .noSuchFileOrDirectory {
            // There is no state yet.
        } catch {
            throw Daemon.StartError(
                code: .tryAgain, message: "The state directory \(state) cannot be given to its new user: \(error).")
        }
    }

    private func upgrade() throws(Errno) {
        let root = try files.openFromRoot(state, O_RDONLY)
        defer { files.close(root) }
        if (try? files.status(root, Self.marker)) != nil { return }
        for name in try names(in: root) where "\(state)/\(name)" != downloads {
            give("\(state)/\(name)", name, in: root, depth: 0, to: nil)
        }
        do throws(Errno) {
            let directory = try files.openFromRoot(downloads, O_RDONLY)
            defer { files.close(directory) }
            for name in try names(in: directory) {
                // Another name is no caller's directory.
                guard let caller = UInt32(name), String(caller) == name else { continue }
                give("\(downloads)/\(name)", name, in: directory, depth: 0, to: caller)
            }
            try own(directory)
        } catch  where error == .noSuchFileOrDirectory {}
        try own(root)
        let marker = try files.openBeneath(root, Self.marker, O_WRONLY | O_CREAT | O_NOFOLLOW, 0o600)
        defer { files.close(marker) }
        try own(marker)
        try files.sync(marker)
        try files.sync(root)
    }

    /// Gives a file or directory, and what is in it, to the daemon's user, and lets `caller` go on with it.
    private func give(_ path: String, _ name: String, in directory: Int32, depth: Int, to caller: UInt32?) {
        do throws(Errno) {
            let status = try files.status(directory, name)
            let isSound = status.isDirectory ? depth < Self.deepest : status.isRegular && status.links == 1
            let isTheirs = status.owner == 0 || status.owner == uid || status.owner == caller
            guard isSound, isTheirs else {
                logger.warning(
                    "It is not given to the daemon's user, as it is a link, special, too deep or somebody else's.",
                    metadata: ["path": "\(path)"])
                return
            }
            let flags = status.isDirectory ? O_RDONLY | O_DIRECTORY : O_RDONLY | O_NONBLOCK | O_NOFOLLOW
            let file = try files.openBeneath(directory, name, flags, 0)
            defer { files.close(file) }
            let opened = try files.statusOfOpen(file)
            // Another than the one that was looked at.
            guard opened.identity == status.identity, status.isDirectory || opened.links == 1 else {
                throw Errno.staleNFSFileHandle
            }
            if let caller {
                // First, as without it the caller must stay the owner.
                let rights: AccessList.Rights = status.isDirectory ? .all : [.read, .write]
                try files.setAccessList(file, AccessList(rights, for: [caller]), false)
                if status.isDirectory { try files.setAccessList(file, AccessList(rights, for: [caller, uid]), true) }
            }
            try own(file)
            guard status.isDirectory else { return }
            for name in try names(in: file) {
                give("\(path)/\(name)", name, in: file, depth: depth + 1, to: caller)
            }
        } catch {
            logger.warning("It is not given to the daemon's user.", metadata: ["path": "\(path)", "error": "\(error)"])
        }
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
