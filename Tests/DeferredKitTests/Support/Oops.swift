import DeferredKit

/// A failure to test with.
enum Oops: Error, Equatable {
    case one
    case two
    case cancelled
}

extension Deferred {
    /// The value, if it succeeded.
    var value: Success? {
        if case .success(let value)? = outcome { value } else { nil }
    }

    /// The failure, if it failed.
    var error: (any Error)? {
        if case .failure(let error)? = outcome { error } else { nil }
    }

    var isCancelled: Bool { error is CancellationError }
}
