import Glibc
import JobModel
import Synchronization

/// What the file system says about the daemon's socket and its users.
struct SocketFacts: Sendable, Equatable {
    enum Kind: Sendable { case missing, socket, other }

    let kind: Kind
    var group = ""
    var groupMayConnect = false
    /// Whether this process is in that group, and whether its user is by now.
    var isInGroup = false
    var isMember = false

    init(kind: Kind) { self.kind = kind }

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

    /// What `user`, who may not connect, can do.
    func nextForDenied(user: String) -> String {
        guard groupMayConnect else {
            return "Only its owner may use it; ask for a daemon whose socket belongs to a group of yours."
        }
        if isMember, !isInGroup {
            return "You joined the group \(group) after this session began; log in again."
        }
        // Membership in root's group would give far more than this.
        guard group != "root" else {
            return "Its group is root: ask an administrator to set socket.group in the daemon's configuration."
        }
        return "An administrator can add you with: adduser \(user) \(group); then log in again."
    }
}

enum Accounts {
    private static let names = Mutex<[uid_t: String]>([:])
    /// The most names that are remembered: the look-up may ask a server.
    private static let mostNames = 1000

    static func userName(_ uid: uid_t) -> String {
        names.withLock { names in
            if let name = names[uid] { return name }
            let name = getpwuid(uid).map { String(cString: $0.pointee.pw_name) } ?? String(uid)
            if names.count < mostNames { names[uid] = name }
            return name
        }
    }

    /// The name of the owner in a job object.
    static func name(_ owner: JSON) -> String {
        owner.int.flatMap(uid_t.init(exactly:)).map(userName)?.sanitized ?? ""
    }

    static func uid(ofUser name: String) -> uid_t? { getpwnam(name)?.pointee.pw_uid }

    static func groupName(_ gid: gid_t) -> String {
        getgrgid(gid).map { String(cString: $0.pointee.gr_name) } ?? String(gid)
    }

    /// Whether the user is a member by now; the process may have started before.
    static func isMember(_ uid: uid_t, of gid: gid_t) -> Bool {
        guard let entry = getpwuid(uid) else { return false }
        var count: Int32 = 1024
        var groups = [gid_t](repeating: 0, count: Int(count))
        guard getgrouplist(entry.pointee.pw_name, entry.pointee.pw_gid, &groups, &count) >= 0 else { return false }
        return groups.prefix(Int(count)).contains(gid)
    }
}
