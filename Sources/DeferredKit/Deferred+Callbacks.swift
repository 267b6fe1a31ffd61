// A callback that returns a Deferred comes in two similar forms, which differ in the `follow` that their types choose.
// If the inner Deferred has the same types, its outcome is taken unchanged, and a loop of such links keeps only two of
// them alive (see `stepAside`); for another type of failure, a link must translate the outcome, and stays.

extension Deferred where Failure == any Error {
    /// Adds a callback for the value, on an executor; a failure skips it.
    ///
    /// - Returns: The closure's result, or the error that it threw.
    @inlinable
    @_disfavoredOverload
    @discardableResult
    public func then<U, X: CallbackExecutor>(
        on executor: X = .inline, _ body: @escaping @Sendable (Success) throws -> U
    ) -> Deferred<U, any Error> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            Deferred.onValue(executor, source, target, trampoline, arriving) { value, target throws in
                target.end(.success(try body(value)), trampoline)
            }
        }
    }

    /// Adds a callback for the value, on an executor; a failure skips it.
    ///
    /// - Returns: The outcome of the closure's Deferred, for which the chain waits, or the error that the closure threw.
    @inlinable
    @discardableResult
    public func then<U, X: CallbackExecutor>(
        on executor: X = .inline, _ body: @escaping @Sendable (Success) throws -> Deferred<U, any Error>
    ) -> Deferred<U, any Error> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            Deferred.onValue(executor, source, target, trampoline, arriving) { value, target throws in
                target.follow(try body(value), trampoline)
            }
        }
    }

    /// Adds a callback for the value, on an executor; a failure skips it.
    ///
    /// - Returns: The outcome of the closure's Deferred, for which the chain waits, or the error that the closure threw.
    @inlinable
    @discardableResult
    public func then<U, E: Error, X: CallbackExecutor>(
        on executor: X = .inline, _ body: @escaping @Sendable (Success) throws -> Deferred<U, E>
    ) -> Deferred<U, any Error> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            Deferred.onValue(executor, source, target, trampoline, arriving) { value, target throws in
                target.follow(try body(value), trampoline)
            }
        }
    }

    /// Adds a callback for the value and one for the failure, of which one runs, on an executor.
    ///
    /// Errors that `body` throws do not reach `handler`.
    ///
    /// - Returns: The result of the closure that ran, or the error that it threw.
    @inlinable
    @_disfavoredOverload
    @discardableResult
    public func then<U, X: CallbackExecutor>(
        on executor: X = .inline, _ body: @escaping @Sendable (Success) throws -> U,
        fail handler: @escaping @Sendable (any Error) throws -> U
    ) -> Deferred<U, any Error> {
        both(on: executor) { (outcome: Outcome) throws -> U in
            switch outcome {
            case .success(let value): try body(value)
            case .failure(let error): try handler(error)
            }
        }
    }

    /// Adds a callback for the value and one for the failure, of which one runs, on an executor.
    ///
    /// Errors that `body` throws do not reach `handler`.
    ///
    /// - Returns: The outcome of the Deferred from the closure that ran, for which the chain waits, or the error
    ///   that the closure threw.
    @inlinable
    @discardableResult
    public func then<U, X: CallbackExecutor>(
        on executor: X = .inline, _ body: @escaping @Sendable (Success) throws -> Deferred<U, any Error>,
        fail handler: @escaping @Sendable (any Error) throws -> Deferred<U, any Error>
    ) -> Deferred<U, any Error> {
        both(on: executor) { (outcome: Outcome) throws -> Deferred<U, any Error> in
            switch outcome {
            case .success(let value): try body(value)
            case .failure(let error): try handler(error)
            }
        }
    }

    /// Adds a callback for the value and one for the failure, of which one runs, on an executor.
    ///
    /// Errors that `body` throws do not reach `handler`.
    ///
    /// - Returns: The outcome of the Deferred from the closure that ran, for which the chain waits, or the error
    ///   that the closure threw.
    @inlinable
    @discardableResult
    public func then<U, E: Error, X: CallbackExecutor>(
        on executor: X = .inline, _ body: @escaping @Sendable (Success) throws -> Deferred<U, E>,
        fail handler: @escaping @Sendable (any Error) throws -> Deferred<U, E>
    ) -> Deferred<U, any Error> {
        both(on: executor) { (outcome: Outcome) throws -> Deferred<U, E> in
            switch outcome {
            case .success(let value): try body(value)
            case .failure(let error): try handler(error)
            }
        }
    }

    /// Adds a callback for the failure, on an executor; a value skips it.
    ///
    /// - Returns: This Deferred's value, the closure's result, or the error that it threw.
    @inlinable
    @_disfavoredOverload
    @discardableResult
    public func fail<X: CallbackExecutor>(
        on executor: X = .inline, _ handler: @escaping @Sendable (any Error) throws -> Success
    ) -> Deferred {
        link(hopping: X.self != InlineExecutor.self, to: Deferred.self) { source, target, trampoline, arriving in
            Deferred.onFailure(executor, source, target, trampoline, arriving) { error, target throws in
                target.end(.success(try handler(error)), trampoline)
            }
        }
    }

    /// Adds a callback for the failure, on an executor; a value skips it.
    ///
    /// - Returns: This Deferred's value, the outcome of the closure's Deferred, for which the chain waits, or the error
    ///   that the closure threw.
    @inlinable
    @discardableResult
    public func fail<X: CallbackExecutor>(
        on executor: X = .inline, _ handler: @escaping @Sendable (any Error) throws -> Deferred<Success, any Error>
    ) -> Deferred {
        link(hopping: X.self != InlineExecutor.self, to: Deferred.self) { source, target, trampoline, arriving in
            Deferred.onFailure(executor, source, target, trampoline, arriving) { error, target throws in
                target.follow(try handler(error), trampoline)
            }
        }
    }

    /// Adds a callback for the failure, on an executor; a value skips it.
    ///
    /// - Returns: This Deferred's value, the outcome of the closure's Deferred, for which the chain waits, or the error
    ///   that the closure threw.
    @inlinable
    @discardableResult
    public func fail<E: Error, X: CallbackExecutor>(
        on executor: X = .inline, _ handler: @escaping @Sendable (any Error) throws -> Deferred<Success, E>
    ) -> Deferred {
        link(hopping: X.self != InlineExecutor.self, to: Deferred.self) { source, target, trampoline, arriving in
            Deferred.onFailure(executor, source, target, trampoline, arriving) { error, target throws in
                target.follow(try handler(error), trampoline)
            }
        }
    }

    /// Adds a callback for any outcome, on an executor.
    ///
    /// - Returns: The closure's result, or the error that it threw.
    @inlinable
    @_disfavoredOverload
    @discardableResult
    public func both<U, X: CallbackExecutor>(
        on executor: X = .inline, _ body: @escaping @Sendable (Outcome) throws -> U
    ) -> Deferred<U, any Error> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            Deferred.onOutcome(executor, source, target, trampoline, arriving) { outcome, target throws in
                target.end(.success(try body(outcome)), trampoline)
            }
        }
    }

    /// Adds a callback for any outcome, on an executor.
    ///
    /// - Returns: The outcome of the closure's Deferred, for which the chain waits, or the error that the closure threw.
    @inlinable
    @discardableResult
    public func both<U, X: CallbackExecutor>(
        on executor: X = .inline, _ body: @escaping @Sendable (Outcome) throws -> Deferred<U, any Error>
    ) -> Deferred<U, any Error> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            Deferred.onOutcome(executor, source, target, trampoline, arriving) { outcome, target throws in
                target.follow(try body(outcome), trampoline)
            }
        }
    }

    /// Adds a callback for any outcome, on an executor.
    ///
    /// - Returns: The outcome of the closure's Deferred, for which the chain waits, or the error that the closure threw.
    @inlinable
    @discardableResult
    public func both<U, E: Error, X: CallbackExecutor>(
        on executor: X = .inline, _ body: @escaping @Sendable (Outcome) throws -> Deferred<U, E>
    ) -> Deferred<U, any Error> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            Deferred.onOutcome(executor, source, target, trampoline, arriving) { outcome, target throws in
                target.follow(try body(outcome), trampoline)
            }
        }
    }
}
