import Glibc
import JobCore
import JobEngine
import JobModel

/// The process at the other end of a connection, as the kernel reports it.
struct Peer: Sendable, Equatable {
    let uid: UInt32
    let groups: Set<UInt32>
    /// ``groups`` as stored with jobs, made once for all requests; nil if they decide nothing or are unknown.
    private let storedGroups: CallerGroups?
    /// The daemon's own uid, which never changes.
    private static let own = geteuid()

    /// Reads the credentials that the peer had when it connected; nil if the kernel reports none.
    init?(socket: Int32) {
        // The members of ucred, which glibc declares for GNU sources only.
        var peer = (pid: pid_t(), uid: uid_t(), gid: gid_t())
        var length = socklen_t(MemoryLayout.size(ofValue: peer))
        guard getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 else { return nil }
        uid = peer.uid
        let supplementary = Self.groups(socket)
        groups = (supplementary ?? []).union([peer.gid])
        // Root and the daemon's own user may do what the daemon may, whatever their groups.
        storedGroups = uid == 0 || uid == Self.own || supplementary == nil ? nil : CallerGroups(groups)
    }

    /// Returns the supplementary groups that the peer had when it connected, or nil if the kernel reports none.
    /// A program that the peer executes later does not change them.
    private static func groups(_ socket: Int32) -> Set<UInt32>? {
        // Without room, the kernel says how much it needs.
        var length = socklen_t(0)
        _ = getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, nil, &length)
        var groups = [gid_t](repeating: 0, count: Int(length) / MemoryLayout<gid_t>.size)
        return getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, &groups, &length) == 0 ? Set(groups) : nil
    }

    /// Returns the peer's rights; members of `adminGroup`, root and the daemon's own user are administrators.
    func caller(adminGroup: UInt32?) -> Caller {
        let isMember = adminGroup.map(groups.contains) ?? false
        return Caller(uid: uid, isAdmin: uid == 0 || uid == Self.own || isMember, groups: storedGroups)
    }
}
