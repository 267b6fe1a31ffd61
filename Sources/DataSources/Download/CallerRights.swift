import Glibc
import JobModel
import Synchronization
import SystemPackage

/// What the process that submitted a job may do with a file or directory that is open, by its mode and access list.
///
/// The daemon opens files for many users, so the kernel's own check is of the daemon's rights and not of theirs. Root may
/// do everything here, as everywhere.
final class CallerRights: Sendable {
    let user: UInt32
    private let files: FileOperations
    /// The groups of the process, where they are known.
    private let storedGroups: CallerGroups?
    /// Found once, and only where they matter, as the system may ask a directory service for them.
    private let groups = Mutex<Set<UInt32>?>(nil)

    /// Nil where the daemon's own rights are what counts: in a user's own instance, and for the daemon's own user.
    init?(of path: DownloadPath, _ files: FileOperations) {
        guard let user = path.owner else { return nil }
        self.user = user
        self.files = files
        storedGroups = path.groups
    }

    /// Whether the user has all of `rights` on what is open.
    func permit(_ rights: AccessList.Rights, on file: Int32) throws(Errno) -> Bool {
        guard user != 0 else { return true }
        let status = try files.statusOfOpen(file)
        let list = try files.accessList(file) ?? AccessList(mode: status.mode)
        return list.permits(
            rights, user: user, groups: userGroups, owner: status.owner, group: status.group)
    }

    private func userGroups() -> Set<UInt32> {
        groups.withLock { known in
            let groups = known ?? storedGroups?.ids ?? files.groups(user)
            known = groups
            return groups
        }
    }

    /// Whether the user may put another file in the place of `name` in a directory that they may write to.
    ///
    /// In one with the sticky bit (as /tmp) that is for the owners of the file and of the directory; a file that the daemon
    /// made for the user names them in its access list and counts as theirs.
    func permitReplacing(_ name: String, in directory: Int32) throws(Errno) -> Bool {
        let above = try files.statusOfOpen(directory)
        guard user != 0, above.mode & UInt32(S_ISVTX) != 0, above.owner != user else { return true }
        let (status, isTheirs) = try files.status(name, in: directory, madeFor: user)
        return status.owner == user || isTheirs
    }
}

extension FileOperations {
    /// What `name` is in a directory, and whether it is a file that the daemon made for `user`: one of its own whose access
    /// list names them. Both are of the same file, whatever is put there meanwhile, and no link is followed.
    func status(
        _ name: String, in directory: Int32, madeFor user: UInt32
    ) throws(Errno) -> (status: Status, isTheirs: Bool) {
        let file = OpenDirectory(
            descriptor: try openBeneath(directory, name, Self.pathOnly | O_NOFOLLOW, 0), path: name, files: self)
        let status = try statusOfOpen(file.descriptor)
        guard status.isRegular, status.owner == geteuid() else { return (status, false) }
        return (status, try accessList(file.descriptor)?.names(user, with: [.read, .write]) == true)
    }
}

extension JobError {
    /// The user may not do that: the same words whether what the path names exists or not.
    init(forbidden path: String) {
        self.init(
            .policy,
            "\"\(path)\" is not where you may read and write; give another path, or ask for the right to that directory."
        )
    }
}
