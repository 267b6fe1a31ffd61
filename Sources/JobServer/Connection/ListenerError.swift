/// Why the daemon cannot listen.
package struct ListenerError: Error, Sendable, Equatable {
    package enum Code: Sendable {
        /// The path cannot be a socket's.
        case path
        /// Another daemon listens there.
        case inUse
        /// The system refused.
        case system
    }

    package let code: Code
    /// A sentence that names the path and the next step.
    package let message: String
}
