/// The error of a Deferred that would have waited for itself.
public struct CycleError: Error, Equatable, CustomStringConvertible {
    /// Creates the error.
    public init() {}

    /// A sentence that describes the error.
    public var description: String { "This Deferred would have waited for itself." }
}

/// The error of a Deferred that exceeded its time limit.
public struct TimeoutError: Error, Equatable, CustomStringConvertible {
    /// The time limit.
    public let after: Duration

    /// Creates the error.
    public init(after: Duration) { self.after = after }

    /// A sentence with the time limit.
    public var description: String { "There was no outcome within \(after)." }
}

/// The failures of all members of a list without a success.
public struct FailureGroup<Failure: Error>: Error {
    /// One failure for each member, in input order.
    public let failures: [Failure]

    /// Creates a group.
    public init(failures: [Failure]) { self.failures = failures }
}

extension FailureGroup: Equatable where Failure: Equatable {}
