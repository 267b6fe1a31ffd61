import SystemPackage

/// A failed interaction with the service manager.
package struct SystemdError: Error, Sendable, CustomStringConvertible {
    /// A sentence that names the object and the next step.
    package let message: String
    /// The error number from libsystemd, if any.
    package let errorNumber: Int32?

    init(_ message: String, errorNumber: Int32? = nil) {
        self.message = message
        self.errorNumber = errorNumber
    }

    package var description: String {
        errorNumber.map { "\(message) (\(Errno(rawValue: $0)))" } ?? message
    }
}
