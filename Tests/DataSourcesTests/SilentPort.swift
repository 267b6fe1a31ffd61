import Glibc
import NIOCore
import Testing

/// A port on loopback that is taken, but where nobody listens: connections are refused.
final class SilentPort: Sendable {
    let port: Int
    private let descriptor: Int32

    init() throws {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        descriptor = number
        let isBound = try SocketAddress(ipAddress: "127.0.0.1", port: 0).withSockAddr { address, length in
            bind(number, address, socklen_t(length)) == 0
        }
        try #require(isBound)
        // Family, then the port, most significant byte first.
        var bytes = [UInt8](repeating: 0, count: 128)
        var length = socklen_t(bytes.count)
        let isNamed = bytes.withUnsafeMutableBytes { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) { getsockname(number, $0.baseAddress, &length) == 0 }
        }
        try #require(isNamed)
        port = Int(bytes[2]) << 8 | Int(bytes[3])
    }

    deinit { close(descriptor) }
}
