import Glibc
import Logging

/// How many descriptors the daemon may have open: a client each, a connection of a source, a file.
enum DescriptorLimit {
    /// What the daemon needs beside its clients.
    private static let others = 512

    /// Raises the limit as far as the system allows, as a shell's or a user manager's own is for programs that use
    /// select(2). Says where that is too little for so many clients.
    static func raise(for connections: Int, _ logger: Logger) {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        if limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max
            _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
        guard limit.rlim_cur < UInt64(connections + others) else { return }
        logger.warning(
            "Fewer descriptors can be open than limits.connections may need; raise LimitNOFILE or lower it.",
            metadata: ["descriptors": "\(limit.rlim_cur)", "connections": "\(connections)"])
    }
}
