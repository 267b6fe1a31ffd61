import Glibc
import NIOCore

extension JobClient {
    /// A process at the other end of a socket, as the kernel reports it (`ucred`).
    package struct Peer: Sendable {
        package let pid: Int32
        package let uid: UInt32
        let gid: UInt32
    }

    /// The process that began to listen at the socket; nil if the kernel reports none.
    package var peer: Peer? {
        get async {
            let option = NIOBSDSocket.Option(rawValue: SO_PEERCRED)
            guard let socket = channel as? any SocketOptionProvider else { return nil }
            return try? await socket.unsafeGetSocketOption(level: .socket, name: option).get()
        }
    }
}
