import Glibc
import Testing

/// The address of a Unix socket.
struct UnixAddress {
    private var address = sockaddr_un()

    init(_ path: String) throws {
        address.sun_family = sa_family_t(AF_UNIX)
        let room = MemoryLayout.size(ofValue: address.sun_path)
        try #require(path.utf8.count < room, "\(path) is too long for a socket")
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    }

    /// Calls `body` with the arguments for `bind` and `connect`.
    func with<Value>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Value) -> Value {
        withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
