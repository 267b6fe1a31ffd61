import CSystemd
import Glibc

/// A listening socket that the service manager opened before it started this process. Its user must close it.
package struct ListenSocket: Sendable {
    /// The unit's `FileDescriptorName=`, or the name under which it was stored.
    package let name: String
    package let descriptor: Int32

    /// Adopts the passed sockets, in the order of the socket unit, and removes their variables from the environment. There
    /// are none if the process was started in another way.
    ///
    /// Changing the environment is unsafe while other threads read it, so call this first in `main`. A second call
    /// returns no sockets. The descriptors are closed on exec.
    package static func passed() throws(SystemdError) -> [ListenSocket] {
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
        var sockets: [ListenSocket] = []
        for index in 0..<count {
            let name = names?[Int(index)].map { String(cString: $0) } ?? "unknown"
            let descriptor = SD_LISTEN_FDS_START + index
            guard sd_is_socket_unix(descriptor, Int32(SOCK_STREAM.rawValue), 1, nil, 0) > 0 else {
                throw SystemdError(
                    "The passed descriptor “\(ServiceNotifier.line(name))” is not a listening AF_UNIX stream socket: give "
                        + "the socket unit a path in ListenStream= and leave Accept= off.")
            }
            sockets.append(ListenSocket(name: name, descriptor: descriptor))
        }
        return sockets
    }
}
