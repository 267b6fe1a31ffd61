/// A Deferred would have waited for itself.
public struct CycleError: Error, Equatable {
    /// Creates the error.
    public init() {}
}

extension CycleError: CustomStringConvertible {
    /// A sentence that says so.
    public var description: String { "This Deferred would have waited for itself." }
}
