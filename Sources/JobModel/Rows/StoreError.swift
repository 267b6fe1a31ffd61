package struct StoreError: Error, Sendable {
    package enum Code: Sendable, Hashable {
        /// The database is damaged, or not deferd's.
        case damaged
        /// Another version of deferd created it.
        case otherVersion
        /// Another daemon has it open.
        case locked
        /// Writing or syncing failed; nothing was kept.
        case write
        case read, closed
    }

    package let code: Code
    /// A sentence that names the file and the next step.
    package let message: String
    package let underlying: (any Error)?
    /// Whether it lasts until a path or permission changes; otherwise it may pass by itself.
    package let isLasting: Bool

    /// Whether the same call may succeed later, without anyone's help.
    package var mayPass: Bool { !isLasting && [.read, .write].contains(code) }

    package init(_ code: Code, _ message: String, underlying: (any Error)? = nil, isLasting: Bool = false) {
        self.code = code
        self.message = message
        self.underlying = underlying
        self.isLasting = isLasting
    }
}

extension StoreError: CustomStringConvertible {
    package var description: String { message }
}
