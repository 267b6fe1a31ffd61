import Glibc

/// A port that listens but serves no client, to detect connection attempts: the system completes connections by itself.
package final class WatchedPort: Sendable {
    package let port: Int
    private let descriptor: Int32

    /// `address` is one of version 4 of this machine; `port` 0 is any that is free.
    package init(_ address: String = "127.0.0.1", port: Int = 0) throws {
        descriptor = socket(
            AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = inet_addr(address)
        name.sin_port = UInt16(port).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &name) { [descriptor] pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 1024) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        self.port = Int(UInt16(bigEndian: name.sin_port))
        guard isListening else { throw SystemCallError(errno) }
    }

    deinit { close(descriptor) }

    /// Whether any client has connected since the last call.
    package var wasConnectedTo: Bool {
        var count = 0
        while case let connection = accept(descriptor, nil, nil), connection >= 0 {
            close(connection)
            count += 1
        }
        return count > 0
    }
}
