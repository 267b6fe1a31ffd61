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
