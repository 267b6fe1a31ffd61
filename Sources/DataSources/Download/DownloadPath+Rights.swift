import Glibc
import JobModel
import SystemPackage

/// The rights of the process that submitted a job to open files and directories, by their modes and access lists.
///
/// The kernel checks only the rights of the daemon, which opens files for many users. These alone count where ``owner`` is
/// nil: in a user instance, and for the daemon's own user. Root has all rights.
extension DownloadPath {
    func permits(_ rights: AccessList.Rights, on file: Int32, _ files: FileOperations) throws(Errno) -> Bool {
        guard let user = owner, user != 0 else { return true }
        let status = try files.statusOfOpen(file)
        let list = try files.accessList(of: file) ?? AccessList(mode: status.mode)
        return list.permits(
            rights, user: user, groups: { groups?.ids ?? files.groups(user) }, owner: status.owner, group: status.group)
    }

    /// Whether the user may replace `name` in a directory to which they may write.
    ///
    /// In a sticky directory such as /tmp, only the owners of the file and of the directory may. A file that the daemon
    /// made for the user names them in its access list and counts as theirs.
    func permitsReplacing(_ name: String, in directory: Int32, _ files: FileOperations) throws(Errno) -> Bool {
        guard let user = owner, user != 0 else { return true }
        let above = try files.statusOfOpen(directory)
        guard above.mode & UInt32(S_ISVTX) != 0, above.owner != user else { return true }
        let (status, isTheirs) = try files.status(name, in: directory, madeFor: user)
        return status.owner == user || isTheirs
    }
}

extension FileOperations {
    /// The status of `name` in a directory, and whether the daemon made the file for `user`: its access list names
    /// them.
    ///
    /// Both describe the same file, even if the name changes hands meanwhile, and no link is followed.
    func status(
        _ name: String, in directory: Int32, madeFor user: UInt32
    ) throws(Errno) -> (status: Status, isTheirs: Bool) {
        let file = OpenFile(try openBeneath(directory, name, Self.pathOnly | O_NOFOLLOW, 0), self)
        let status = try statusOfOpen(file.descriptor)
        guard status.isRegular, status.owner == geteuid() else { return (status, false) }
        return (status, try accessList(of: file.descriptor)?.names(user, with: [.read, .write]) == true)
    }
}

extension JobError {
    /// The user lacks the right; the message does not reveal whether the path exists.
    init(forbidden path: String) {
        self.init(
            .policy,
            "You may not read and write \"\(path)\"; give another path, or ask for the right to that directory.")
    }
}
