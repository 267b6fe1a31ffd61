extension Deferred {
    /// Transforms the value, on an executor.
    ///
    /// - Returns: The closure's result, or this Deferred's failure.
    @inlinable
    public func map<U, X: CallbackExecutor>(
        on executor: X = .inline, _ transform: @escaping @Sendable (Success) -> U
    ) -> Deferred<U, Failure> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            Deferred.onValue(executor, source, target, trampoline, arriving) { value, target in
                target.end(.success(transform(value)), trampoline)
            }
        }
    }

    /// Transforms the value with a closure that may throw, on an executor.
    ///
    /// - Returns: The closure's result, the error that it threw, or this Deferred's failure.
    @inlinable
    @_disfavoredOverload
    public func map<U, X: CallbackExecutor>(
        on executor: X = .inline, _ transform: @escaping @Sendable (Success) throws(Failure) -> U
    ) -> Deferred<U, Failure> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            Deferred.onValue(executor, source, target, trampoline, arriving) { value, target throws(Failure) in
                target.end(.success(try transform(value)), trampoline)
            }
        }
    }

    /// Continues with another Deferred, which a closure returns on an executor.
    ///
    /// - Returns: The outcome of the closure's Deferred, or this one's failure.
    @inlinable
    public func flatMap<U, X: CallbackExecutor>(
        on executor: X = .inline, _ transform: @escaping @Sendable (Success) -> Deferred<U, Failure>
    ) -> Deferred<U, Failure> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            Deferred.onValue(executor, source, target, trampoline, arriving) { value, target in
                target.follow(transform(value), trampoline)
            }
        }
    }

    /// Continues with another Deferred, which a closure that may throw returns on an executor.
    ///
    /// - Returns: The outcome of the closure's Deferred, the error that it threw, or this one's failure.
    @inlinable
    @_disfavoredOverload
    public func flatMap<U, X: CallbackExecutor>(
        on executor: X = .inline, _ transform: @escaping @Sendable (Success) throws(Failure) -> Deferred<U, Failure>
    ) -> Deferred<U, Failure> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            Deferred.onValue(executor, source, target, trampoline, arriving) { value, target throws(Failure) in
                target.follow(try transform(value), trampoline)
            }
        }
    }

    /// Transforms the failure, on an executor.
    ///
    /// - Returns: This Deferred's value, or the failure that the closure gives.
    @inlinable
    public func mapError<E: Error, X: CallbackExecutor>(
        on executor: X = .inline, _ transform: @escaping @Sendable (Failure) -> E
    ) -> Deferred<Success, E> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            Deferred.onFailure(executor, source, target, trampoline, arriving) { error, target throws(E) in
                target.end(.failure(transform(error)), trampoline)
            }
        }
    }

    /// Replaces a failure with the outcome of another Deferred, which a closure returns on an executor.
    ///
    /// - Returns: This Deferred's value, or the outcome of the closure's Deferred.
    @inlinable
    public func flatMapError<E: Error, X: CallbackExecutor>(
        on executor: X = .inline, _ transform: @escaping @Sendable (Failure) -> Deferred<Success, E>
    ) -> Deferred<Success, E> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            Deferred.onFailure(executor, source, target, trampoline, arriving) { error, target throws(E) in
                target.follow(transform(error), trampoline)
            }
        }
    }

    /// Runs a closure with any outcome, on an executor, then passes the outcome on.
    ///
    /// - Returns: A Deferred with the same outcome, resolved after the closure ran.
    @inlinable
    @discardableResult
    public func finally<X: CallbackExecutor>(
        on executor: X = .inline, _ body: @escaping @Sendable (Outcome) -> Void
    ) -> Deferred {
        link(hopping: X.self != InlineExecutor.self, to: Deferred.self) { source, target, trampoline, arriving in
            Deferred.onOutcome(executor, source, target, trampoline, arriving) { outcome, target throws(Failure) in
                body(outcome)
                return target.end(outcome, trampoline)
            }
        }
    }

    /// Converts the failure to any type, for the classic callback chain.
    @inlinable
    public func erased() -> Deferred<Success, any Error> {
        link(hopping: false) { source, target, trampoline, _ in
            let outcome = Deferred.result(of: source)
            return unsafeDowncast(target, to: Deferred<Success, any Error>.self)
                .end(outcome.mapError { $0 }, trampoline)
        }
    }
}
