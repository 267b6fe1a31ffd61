import CLinux
import Glibc
import JobCore
import JobEngine
import JobModel

/// Who is at the other end of a connection, as the kernel says.
struct Peer: Sendable, Equatable {
    let uid: UInt32
    let pid: Int32
    let groups: Set<UInt32>
    /// ``groups`` as they are stored with jobs, made once for all requests; nil where they decide nothing, or are not known.
    private let storedGroups: CallerGroups?
    /// The daemon's own user, which never changes.
    private static let own = geteuid()

    /// The credentials that the peer had when it connected; nil where the kernel gives none.
    init?(socket: Int32) {
        var (uid, gid, pid) = (uid_t(), gid_t(), pid_t())
        guard deferd_peer(socket, &uid, &gid, &pid) == 0 else { return nil }
        self.uid = uid
        self.pid = pid
        let supplementary = Self.groups(socket)
        groups = (supplementary ?? []).union([gid])
        // Root and the daemon's own user may do what the daemon may, whatever their groups are.
        storedGroups = uid == 0 || uid == Self.own || supplementary == nil ? nil : CallerGroups(groups)
    }

    /// The supplementary groups; nil where the kernel does not say. It kept them at connect, so a program that the peer became
    /// later has no say.
    private static func groups(_ socket: Int32) -> Set<UInt32>? {
        var groups = [gid_t](repeating: 0, count: 64)
        while true {
            let count = deferd_peer_groups(socket, &groups, Int32(groups.count))
            if count >= 0 { return Set(groups.prefix(Int(count))) }
            guard errno == ERANGE, groups.count < 65_536 else { return nil }
            groups = [gid_t](repeating: 0, count: groups.count * 2)
        }
    }

    /// The rights of this peer; members of `adminGroup` are administrators, as are root and the daemon's own user.
    func caller(adminGroup: UInt32?) -> Caller {
        let isMember = adminGroup.map(groups.contains) ?? false
        return Caller(uid: uid, isAdmin: uid == 0 || uid == Self.own || isMember, groups: storedGroups)
    }
}
