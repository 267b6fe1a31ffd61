import Glibc
import Testing

/// A descriptor of a kind that a socket unit could pass, rightly or wrongly.
final class PassedSocket {
    enum Kind: Sendable { case stream, datagram, packet, internet, pipe }

    let descriptor: Int32

    init(_ kind: Kind, listening: Bool) throws {
        switch kind {
        case .stream: descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
        case .datagram: descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        case .packet: descriptor = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0)
        case .internet: descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        case .pipe:
            var ends: [Int32] = [-1, -1]
            _ = Glibc.pipe(&ends)
            close(ends[1])
            descriptor = ends[0]
        }
        try #require(descriptor >= 0)
        guard listening else { return }
        // Binding to the bare family makes the kernel choose a free abstract name; an internet socket needs no address.
        if kind != .internet { try #require(SocketAddress("").bind(descriptor) == 0) }
        try #require(listen(descriptor, 8) == 0)
    }

    deinit { close(descriptor) }
}
