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
            guard sd_is_socket_unix(descriptor, Int32(SOCK_STREAM.rawValue), 1, nil, 0) > 0 else {
                throw SystemdError(
                    "The passed descriptor “\(ServiceNotifier.line(name))” is not a listening AF_UNIX stream socket: give "
                        + "the socket unit a path in ListenStream= and leave Accept= off.")
            }
            sockets.append(Socket(name: name, descriptor: descriptor))
        }
        self.sockets = sockets
    }
}
