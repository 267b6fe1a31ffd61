import Glibc
import Logging

enum DescriptorLimit {
    /// The descriptors kept for everything but clients: sources, downloads, the daemon's own.
    private static let others = 512

    /// Raises the limit as far as the system allows, and returns how many clients can be served, at most `connections`.
    ///
    /// A descriptor must be left to accept one client too many, who is then refused with a reason.
    static func raise(for connections: Int, _ logger: Logger) -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return connections }
        if limit.rlim_cur < limit.rlim_max {
            let soft = limit.rlim_cur
            limit.rlim_cur = limit.rlim_max
            if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) != 0 { limit.rlim_cur = soft }
        }
        let descriptors = Int(clamping: limit.rlim_cur)
        let clients = max(1, descriptors - min(others, descriptors / 2))
        guard clients < connections else { return connections }
        logger.warning(
            "Too few descriptors are allowed for limits.connections, so fewer clients are served; raise LimitNOFILE=.",
            metadata: ["descriptors": "\(descriptors)", "connections": "\(clients)"])
        return clients
    }
}
