import Glibc
import Testing

/// The manager's end of the notification protocol: an AF_UNIX datagram socket this process is told of.
///
/// It changes the environment, so only a process of its own (an exit test) may make one.
struct NotificationSocket {
    struct Notification {
        var assignments: [String]
        var descriptors: [Int32]
    }

    private let descriptor: Int32

    init() throws {
        // An abstract name, written with @ in the environment, goes away with the process.
        let name = "deferd-notify-\(getpid())"
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        try #require(descriptor >= 0)
        try #require(SocketAddress("\0" + name).bind(descriptor) == 0)
        setenv("NOTIFY_SOCKET", "@" + name, 1)
    }

    /// The oldest notification; sent ones have already arrived, so this never waits.
    func receive() throws -> Notification {
        var text = [UInt8](repeating: 0, count: 8192)
        var control = [UInt8](repeating: 0, count: 256)
        var message = msghdr()
        let length = text.withUnsafeMutableBytes { text in
            control.withUnsafeMutableBytes { control in
                var vector = iovec(iov_base: text.baseAddress, iov_len: text.count)
                return withUnsafeMutablePointer(to: &vector) { vector in
                    message.msg_iov = vector
                    message.msg_iovlen = 1
                    message.msg_control = control.baseAddress
                    message.msg_controllen = control.count
                    return recvmsg(descriptor, &message, Int32(MSG_DONTWAIT))
                }
            }
        }
        try #require(length >= 0, "nothing was sent")
        var descriptors: [Int32] = []
        let header = MemoryLayout<cmsghdr>.size
        if message.msg_controllen > header {
            let end = control.withUnsafeBytes { $0.loadUnaligned(as: cmsghdr.self).cmsg_len }
            descriptors = stride(from: header, to: Int(end), by: 4).map { offset in
                control.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Int32.self) }
            }
        }
        let lines = String(decoding: text.prefix(length), as: UTF8.self).split(separator: "\n")
        return Notification(assignments: lines.map(String.init), descriptors: descriptors)
    }
}

/// An AF_UNIX address: a path, or an abstract name after a NUL.
struct SocketAddress {
    private var address = sockaddr_un()
    private let length: socklen_t

    init(_ name: String) throws {
        let bytes = Array(name.utf8)
        let start = MemoryLayout<sockaddr_un>.size - MemoryLayout.size(ofValue: address.sun_path)
        length = socklen_t(start + bytes.count)
        address.sun_family = sa_family_t(AF_UNIX)
        let room = MemoryLayout.size(ofValue: address.sun_path)
        try #require(bytes.count < room, "\(name) is too long for a socket")
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    }

    func bind(_ descriptor: Int32) -> Int32 {
        withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.bind(descriptor, $0, length) }
        }
    }
}
