import CSystemd
import Glibc

/// The listening sockets that the service manager opened before it started this process.
package struct ListenSockets: Sendable {
    /// One passed socket, which its user must close.
    package struct Socket: Sendable, Hashable {
        /// The unit's `FileDescriptorName=`, or the name under which it was stored.
        package let name: String
        package let descriptor: Int32
    }

    /// In the order of the socket unit; empty if the process was started in another way.
    package let sockets: [Socket]

    /// Adopts the passed sockets and removes their variables from the environment.
    ///
    /// Changing the environment is unsafe while other threads read it, so call this first in `main`. A second call
    /// returns no sockets. The descriptors are closed on exec.
    package init() throws(SystemdError) {
        var names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
        let count = sd_listen_fds_with_names(1, &names)
        guard count >= 0 else {
            throw SystemdError(
                "LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES are inconsistent: start deferd with its socket unit.",
                errorNumber: -count)
        }
        defer {
            for index in 0..<Int(count) { free(names?[index]) }
            free(names)
        }
        var sockets: [Socket] = []
        for index in 0..<count {
            let name = names?[Int(index)].map { String(cString: $0) } ?? "unknown"
            let descriptor = SD_LISTEN_FDS_START + index
            if let defect = Self.defect(of: descriptor) {
                throw SystemdError(
                    "The passed descriptor “\(ServiceNotifier.line(name))” is \(defect), not a listening AF_UNIX stream "
                        + "socket: give the socket unit a path in ListenStream= and leave Accept= off.")
            }
            sockets.append(Socket(name: name, descriptor: descriptor))
        }
        self.sockets = sockets
    }

    /// A description of a descriptor that is not a listening AF_UNIX stream socket.
    private static func defect(of descriptor: Int32) -> String? {
        let stream = Int32(SOCK_STREAM.rawValue)
        if sd_is_socket_unix(descriptor, stream, 1, nil, 0) > 0 { return nil }
        if sd_is_socket(descriptor, AF_UNSPEC, 0, -1) <= 0 { return "no socket" }
        if sd_is_socket(descriptor, AF_UNIX, 0, -1) <= 0 { return "a socket of another address family" }
        if sd_is_socket(descriptor, AF_UNIX, stream, -1) <= 0 { return "a datagram or sequenced-packet socket" }
        return "a connected or unconnected socket that does not listen"
    }
}
