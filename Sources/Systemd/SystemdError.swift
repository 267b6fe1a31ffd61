import SystemPackage

/// Something asked of the service manager, or received from it, that did not work.
package struct SystemdError: Error, Sendable, CustomStringConvertible {
    package enum Code: Sendable, Hashable {
        /// The notification socket is named in the environment but did not accept the message.
        case notificationNotSent
        /// A name for a stored descriptor that the service manager would refuse.
        case descriptorName
        /// The watchdog's environment variables do not make sense.
        case watchdogEnvironment
        /// The environment variables of passed sockets do not make sense.
        case listenEnvironment
        /// A passed descriptor is not a listening AF_UNIX stream socket.
        case notListening
    }

    package let code: Code
    /// A sentence that names the object and what to do next.
    package let message: String
    /// The error number libsystemd gave, if it gave one.
    package let errorNumber: Int32?

    init(_ code: Code, _ message: String, errorNumber: Int32? = nil) {
        self.code = code
        self.message = message
        self.errorNumber = errorNumber
    }

    package var description: String {
        guard let errorNumber else { return message }
        return "\(message) (\(Errno(rawValue: errorNumber)))"
    }
}
