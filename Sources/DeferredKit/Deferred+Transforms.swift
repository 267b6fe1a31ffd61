// The compiler decides the check on the executor's type in every step: with `.inline`, none of it remains.

extension Deferred {
    /// Transforms the value.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - transform: Gets the value; a failure skips it.
    /// - Returns: The closure's result, or this Deferred's failure.
    @inlinable
    public func map<U, X: CallbackExecutor>(
        on executor: X = .inline,
        _ transform: @escaping @Sendable (Success) -> U
    ) -> Deferred<U, Failure> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            let typed = unsafeDowncast(target, to: Deferred<U, Failure>.self)
            switch unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped {
            case .success(let value):
                if X.self != InlineExecutor.self, arriving { return Deferred.hop(source, target, executor) }
                typed.settle(.success(transform(value)), trampoline)
            case .failure(let error):
                typed.settle(.failure(error), trampoline)
            }
            return .done
        }
    }

    /// Transforms the value with a closure that may throw.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - transform: Gets the value; a failure skips it. A thrown error becomes the failure.
    /// - Returns: The closure's result, or this Deferred's failure.
    @inlinable
    @_disfavoredOverload
    public func map<U, X: CallbackExecutor>(
        on executor: X = .inline,
        _ transform: @escaping @Sendable (Success) throws(Failure) -> U
    ) -> Deferred<U, Failure> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            let typed = unsafeDowncast(target, to: Deferred<U, Failure>.self)
            switch unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped {
            case .success(let value):
                if X.self != InlineExecutor.self, arriving { return Deferred.hop(source, target, executor) }
                do throws(Failure) {
                    typed.settle(.success(try transform(value)), trampoline)
                } catch {
                    typed.settle(.failure(error), trampoline)
                }
            case .failure(let error):
                typed.settle(.failure(error), trampoline)
            }
            return .done
        }
    }

    /// Continues with another Deferred.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - transform: Gets the value; a failure skips it.
    /// - Returns: The outcome of the Deferred that the closure returned, or this one's failure.
    @inlinable
    public func flatMap<U, X: CallbackExecutor>(
        on executor: X = .inline,
        _ transform: @escaping @Sendable (Success) -> Deferred<U, Failure>
    ) -> Deferred<U, Failure> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            let typed = unsafeDowncast(target, to: Deferred<U, Failure>.self)
            switch unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped {
            case .success(let value):
                if X.self != InlineExecutor.self, arriving { return Deferred.hop(source, target, executor) }
                return typed.follow(transform(value), trampoline)
            case .failure(let error):
                typed.settle(.failure(error), trampoline)
            }
            return .done
        }
    }

    /// Continues with another Deferred from a closure that may throw.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - transform: Gets the value; a failure skips it. A thrown error becomes the failure.
    /// - Returns: The outcome of the Deferred that the closure returned, or this one's failure.
    @inlinable
    @_disfavoredOverload
    public func flatMap<U, X: CallbackExecutor>(
        on executor: X = .inline,
        _ transform: @escaping @Sendable (Success) throws(Failure) -> Deferred<U, Failure>
    ) -> Deferred<U, Failure> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            let typed = unsafeDowncast(target, to: Deferred<U, Failure>.self)
            switch unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped {
            case .success(let value):
                if X.self != InlineExecutor.self, arriving { return Deferred.hop(source, target, executor) }
                do throws(Failure) {
                    return typed.follow(try transform(value), trampoline)
                } catch {
                    typed.settle(.failure(error), trampoline)
                }
            case .failure(let error):
                typed.settle(.failure(error), trampoline)
            }
            return .done
        }
    }

    /// Transforms the failure.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - transform: Gets the failure; a value skips it.
    /// - Returns: This Deferred's value, or the failure that the closure gives.
    @inlinable
    public func mapError<E: Error, X: CallbackExecutor>(
        on executor: X = .inline,
        _ transform: @escaping @Sendable (Failure) -> E
    ) -> Deferred<Success, E> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            let typed = unsafeDowncast(target, to: Deferred<Success, E>.self)
            switch unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped {
            case .success(let value):
                typed.settle(.success(value), trampoline)
            case .failure(let error):
                if X.self != InlineExecutor.self, arriving { return Deferred.hop(source, target, executor) }
                typed.settle(.failure(transform(error)), trampoline)
            }
            return .done
        }
    }

    /// Replaces a failure with the outcome of another Deferred.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - transform: Gets the failure; a value skips it.
    /// - Returns: This Deferred's value, or the outcome of the Deferred that the closure returned.
    @inlinable
    public func flatMapError<E: Error, X: CallbackExecutor>(
        on executor: X = .inline,
        _ transform: @escaping @Sendable (Failure) -> Deferred<Success, E>
    ) -> Deferred<Success, E> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            let typed = unsafeDowncast(target, to: Deferred<Success, E>.self)
            switch unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped {
            case .success(let value):
                typed.settle(.success(value), trampoline)
            case .failure(let error):
                if X.self != InlineExecutor.self, arriving { return Deferred.hop(source, target, executor) }
                return typed.follow(transform(error), trampoline)
            }
            return .done
        }
    }

    /// Runs a closure with any outcome, then passes the outcome on.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - body: Gets the outcome.
    /// - Returns: A Deferred with the same outcome, resolved after the closure ran.
    @inlinable
    @discardableResult
    public func finally<X: CallbackExecutor>(
        on executor: X = .inline,
        _ body: @escaping @Sendable (Outcome) -> Void
    ) -> Deferred {
        link(hopping: X.self != InlineExecutor.self, to: Deferred.self) { source, target, trampoline, arriving in
            if X.self != InlineExecutor.self, arriving { return Deferred.hop(source, target, executor) }
            let outcome = unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped
            body(outcome)
            unsafeDowncast(target, to: Deferred.self).settle(outcome, trampoline)
            return .done
        }
    }

    /// Converts the failure to any type.
    ///
    /// - Returns: A Deferred with the same outcome, for the classic callback chain.
    @inlinable
    public func erased() -> Deferred<Success, any Error> {
        link(hopping: false) { source, target, trampoline, _ in
            let outcome = unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped
            unsafeDowncast(target, to: Deferred<Success, any Error>.self)
                .settle(outcome.mapError { $0 }, trampoline)
            return .done
        }
    }
}
