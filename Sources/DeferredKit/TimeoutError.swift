/// A Deferred took longer than it was given.
public struct TimeoutError: Error, Equatable {
    /// The time it was given.
    public let after: Duration

    /// Creates the error.
    ///
    /// - Parameter after: The time that was given.
    public init(after: Duration) {
        self.after = after
    }
}

extension TimeoutError: CustomStringConvertible {
    /// A sentence with the time that was given.
    public var description: String { "There was no outcome within \(after)." }
}
