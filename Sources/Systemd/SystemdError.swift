import SystemPackage

/// A failed interaction with the service manager.
package struct SystemdError: Error, Sendable, CustomStringConvertible {
    package enum Code: Sendable, Hashable {
        /// The notification socket is named in the environment but did not accept the message.
        case notificationNotSent
        /// A name for a stored descriptor that the service manager would refuse.
        case descriptorName
        /// The watchdog's environment variables are inconsistent.
        case watchdogEnvironment
        /// The environment variables of passed sockets are inconsistent.
        case listenEnvironment
        /// A passed descriptor is not a listening AF_UNIX stream socket.
        case notListening
    }

    package let code: Code
    /// A sentence that names the object and the next step.
    package let message: String
    /// The error number from libsystemd, if any.
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
