/// A Deferred would have waited for itself.
public struct CycleError: Error, Equatable {
    /// Creates the error.
    public init() {}
}

extension CycleError: CustomStringConvertible {
    /// A sentence that says so.
    public var description: String { "This Deferred would have waited for itself." }
}

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

/// The failures of all members of a list of which none succeeded.
public struct FailureGroup<Failure: Error>: Error {
    /// One failure for each member, in input order.
    public let failures: [Failure]

    /// Creates a group.
    ///
    /// - Parameter failures: One failure for each member, in input order.
    public init(failures: [Failure]) {
        self.failures = failures
    }
}

extension FailureGroup: Equatable where Failure: Equatable {}
