import Glibc

/// A port on loopback that refuses connections or, if `isListening`, accepts them and never answers.
package final class SilentPort: Sendable {
    package let port: Int
    private let descriptor: Int32

    package init(isListening: Bool = false) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { [descriptor] pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        port = Int(UInt16(bigEndian: address.sin_port))
        guard isBound, !isListening || listen(descriptor, 100) == 0 else { throw SystemCallError(errno) }
    }

    /// Closes the connections that were made to it so far; returns their number.
    package func closeConnections() -> Int {
        var (count, listener) = (0, pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
        while poll(&listener, 1, 0) > 0 {
            close(accept(descriptor, nil, nil))
            count += 1
        }
        return count
    }

    deinit { close(descriptor) }
}

/// A call of the system that failed.
package struct SystemCallError: Error, CustomStringConvertible {
    package let code: Int32

    package init(_ code: Int32) {
        self.code = code
    }

    package var description: String { String(cString: strerror(code)) }
}
