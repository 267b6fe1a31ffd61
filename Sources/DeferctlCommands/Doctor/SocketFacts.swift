import Glibc

/// What the file system says of the daemon's socket, and of who may use it.
struct SocketFacts: Sendable, Equatable {
    enum Kind: Sendable { case missing, socket, other }

    let kind: Kind
    /// The name, or else the number, of the socket's group.
    var group = ""
    /// Whether its group may connect.
    var groupMayConnect = false
    /// Whether this process is in that group, and whether its user is by now.
    var isInGroup = false
    var isMember = false

    init(kind: Kind) { self.kind = kind }

    /// Looks at the socket at `path`.
    init(at path: String) {
        var facts = stat()
        guard stat(path, &facts) == 0 else {
            kind = .missing
            return
        }
        kind = facts.st_mode & S_IFMT == S_IFSOCK ? .socket : .other
        groupMayConnect = facts.st_mode & S_IWGRP != 0
        group = Accounts.groupName(facts.st_gid)
        var own = [gid_t](repeating: 0, count: 1024)
        let count = getgroups(Int32(own.count), &own)
        isInGroup = getegid() == facts.st_gid || own.prefix(Int(max(0, count))).contains(facts.st_gid)
        isMember = Accounts.isMember(geteuid(), of: facts.st_gid)
    }

    /// What to do for a caller, called `user`, who may not connect.
    func nextForDenied(user: String) -> String {
        guard groupMayConnect else {
            return "Its owner alone may use it; ask for a daemon's socket of a group you are in."
        }
        if isMember, !isInGroup {
            return "You are in the group \(group) since this session began; log in again."
        }
        // Nobody becomes a member of root's group for this.
        guard group != "root" else {
            return "Its group is root: an administrator sets socket.group in the daemon's configuration to another."
        }
        return "An administrator lets you in with: adduser \(user) \(group); log in again then."
    }
}

/// Names of users and groups.
enum Accounts {
    static func userName(_ uid: uid_t) -> String {
        getpwuid(uid).map { String(cString: $0.pointee.pw_name) } ?? String(uid)
    }

    static func groupName(_ gid: gid_t) -> String {
        getgrgid(gid).map { String(cString: $0.pointee.gr_name) } ?? String(gid)
    }

    /// Whether the database of users says so; the process may have begun before.
    static func isMember(_ uid: uid_t, of gid: gid_t) -> Bool {
        guard let entry = getpwuid(uid) else { return false }
        var count: Int32 = 1024
        var groups = [gid_t](repeating: 0, count: Int(count))
        guard getgrouplist(entry.pointee.pw_name, entry.pointee.pw_gid, &groups, &count) >= 0 else { return false }
        return groups.prefix(Int(count)).contains(gid)
    }
}
