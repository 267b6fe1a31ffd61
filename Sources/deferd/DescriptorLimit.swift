import Glibc
import Logging

/// How many descriptors the daemon may have open: a client each, a connection of a source, a file.
enum DescriptorLimit {
    /// What is left for everything but clients, where there are so many: the daemon's own, sources, downloads.
    private static let others = 512

    /// Raises the limit as far as the system allows, as a shell's or a user manager's own is for programs that use
    /// select(2). Gives how many clients can be served with it, at most `connections`, and says where those are fewer: one
    /// too many can be told so only while a descriptor is left to accept it with.
    static func raise(for connections: Int, _ logger: Logger) -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return connections }
        if limit.rlim_cur < limit.rlim_max {
            let soft = limit.rlim_cur
            limit.rlim_cur = limit.rlim_max
            if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) != 0 { limit.rlim_cur = soft }
        }
        let clients = clients(of: Int(clamping: limit.rlim_cur))
        guard clients < connections else { return connections }
        logger.warning(
            "Fewer clients are served than limits.connections says, as too few descriptors can be open; raise LimitNOFILE.",
            metadata: ["descriptors": "\(limit.rlim_cur)", "connections": "\(clients)"])
        return clients
    }

    /// How many of so many descriptors clients may have.
    private static func clients(of descriptors: Int) -> Int { max(1, descriptors - min(others, descriptors / 2)) }
}
