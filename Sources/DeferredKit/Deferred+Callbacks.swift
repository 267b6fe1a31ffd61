// The compiler decides the check on the executor's type in every step: with `.inline`, none of it remains.
//
// A callback that returns a Deferred comes in two similar forms, which differ in the `follow` that their types choose.
// If the inner Deferred has the same types, its outcome is taken unchanged, and a loop of such links keeps only two of
// them alive (see `stepAside`); for another type of failure, a link must translate the outcome, and stays.

extension Deferred where Failure == any Error {
    /// Adds a callback for the value.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - body: Gets the value; a failure skips it. A thrown error becomes the failure.
    /// - Returns: The closure's result.
    @inlinable
    @_disfavoredOverload
    @discardableResult
    public func then<U, X: CallbackExecutor>(
        on executor: X = .inline,
        _ body: @escaping @Sendable (Success) throws -> U
    ) -> Deferred<U, any Error> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            let typed = unsafeDowncast(target, to: Deferred<U, any Error>.self)
            switch unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped {
            case .success(let value):
                if X.self != InlineExecutor.self, arriving { return Deferred.hop(source, target, executor) }
                do {
                    typed.settle(.success(try body(value)), trampoline)
                } catch {
                    typed.settle(.failure(error), trampoline)
                }
            case .failure(let error):
                typed.settle(.failure(error), trampoline)
            }
            return .done
        }
    }

    /// Adds a callback for the value.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - body: Gets the value; a failure skips it. A thrown error becomes the failure.
    /// - Returns: The outcome of the closure's Deferred; until then, the chain pauses.
    @inlinable
    @discardableResult
    public func then<U, X: CallbackExecutor>(
        on executor: X = .inline,
        _ body: @escaping @Sendable (Success) throws -> Deferred<U, any Error>
    ) -> Deferred<U, any Error> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            let typed = unsafeDowncast(target, to: Deferred<U, any Error>.self)
            switch unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped {
            case .success(let value):
                if X.self != InlineExecutor.self, arriving { return Deferred.hop(source, target, executor) }
                do {
                    return typed.follow(try body(value), trampoline)
                } catch {
                    typed.settle(.failure(error), trampoline)
                }
            case .failure(let error):
                typed.settle(.failure(error), trampoline)
            }
            return .done
        }
    }

    /// Adds a callback for the value.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - body: Gets the value; a failure skips it. A thrown error becomes the failure.
    /// - Returns: The outcome of the closure's Deferred; until then, the chain pauses.
    @inlinable
    @discardableResult
    public func then<U, E: Error, X: CallbackExecutor>(
        on executor: X = .inline,
        _ body: @escaping @Sendable (Success) throws -> Deferred<U, E>
    ) -> Deferred<U, any Error> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            let typed = unsafeDowncast(target, to: Deferred<U, any Error>.self)
            switch unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped {
            case .success(let value):
                if X.self != InlineExecutor.self, arriving { return Deferred.hop(source, target, executor) }
                do {
                    return typed.follow(try body(value), trampoline)
                } catch {
                    typed.settle(.failure(error), trampoline)
                }
            case .failure(let error):
                typed.settle(.failure(error), trampoline)
            }
            return .done
        }
    }

    /// Adds a callback for the value and one for the failure, of which one runs.
    ///
    /// - Parameters:
    ///   - executor: Where the closures run.
    ///   - body: Gets the value.
    ///   - handler: Gets this Deferred's failure, but not errors thrown by `body`.
    /// - Returns: The result of the closure that ran.
    @inlinable
    @_disfavoredOverload
    @discardableResult
    public func then<U, X: CallbackExecutor>(
        on executor: X = .inline,
        _ body: @escaping @Sendable (Success) throws -> U,
        fail handler: @escaping @Sendable (any Error) throws -> U
    ) -> Deferred<U, any Error> {
        both(on: executor) { (outcome: Outcome) throws -> U in
            switch outcome {
            case .success(let value): try body(value)
            case .failure(let error): try handler(error)
            }
        }
    }

    /// Adds a callback for the value and one for the failure, of which one runs.
    ///
    /// - Parameters:
    ///   - executor: Where the closures run.
    ///   - body: Gets the value.
    ///   - handler: Gets this Deferred's failure, but not errors thrown by `body`.
    /// - Returns: The outcome of the Deferred from the closure that ran; until then, the chain pauses.
    @inlinable
    @discardableResult
    public func then<U, X: CallbackExecutor>(
        on executor: X = .inline,
        _ body: @escaping @Sendable (Success) throws -> Deferred<U, any Error>,
        fail handler: @escaping @Sendable (any Error) throws -> Deferred<U, any Error>
    ) -> Deferred<U, any Error> {
        both(on: executor) { (outcome: Outcome) throws -> Deferred<U, any Error> in
            switch outcome {
            case .success(let value): try body(value)
            case .failure(let error): try handler(error)
            }
        }
    }

    /// Adds a callback for the value and one for the failure, of which one runs.
    ///
    /// - Parameters:
    ///   - executor: Where the closures run.
    ///   - body: Gets the value.
    ///   - handler: Gets this Deferred's failure, but not errors thrown by `body`.
    /// - Returns: The outcome of the Deferred from the closure that ran; until then, the chain pauses.
    @inlinable
    @discardableResult
    public func then<U, E: Error, X: CallbackExecutor>(
        on executor: X = .inline,
        _ body: @escaping @Sendable (Success) throws -> Deferred<U, E>,
        fail handler: @escaping @Sendable (any Error) throws -> Deferred<U, E>
    ) -> Deferred<U, any Error> {
        both(on: executor) { (outcome: Outcome) throws -> Deferred<U, E> in
            switch outcome {
            case .success(let value): try body(value)
            case .failure(let error): try handler(error)
            }
        }
    }

    /// Adds a callback for the failure.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - handler: Gets the failure; a value skips it. A thrown error is the new failure.
    /// - Returns: This Deferred's value, or the closure's result.
    @inlinable
    @_disfavoredOverload
    @discardableResult
    public func fail<X: CallbackExecutor>(
        on executor: X = .inline,
        _ handler: @escaping @Sendable (any Error) throws -> Success
    ) -> Deferred {
        link(hopping: X.self != InlineExecutor.self, to: Deferred.self) { source, target, trampoline, arriving in
            let typed = unsafeDowncast(target, to: Deferred.self)
            switch unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped {
            case .success(let value):
                typed.settle(.success(value), trampoline)
            case .failure(let error):
                if X.self != InlineExecutor.self, arriving { return Deferred.hop(source, target, executor) }
                do {
                    typed.settle(.success(try handler(error)), trampoline)
                } catch {
                    typed.settle(.failure(error), trampoline)
                }
            }
            return .done
        }
    }

    /// Adds a callback for the failure.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - handler: Gets the failure; a value skips it. A thrown error is the new failure.
    /// - Returns: This Deferred's value, or the outcome of the closure's Deferred; until then, the chain pauses.
    @inlinable
    @discardableResult
    public func fail<X: CallbackExecutor>(
        on executor: X = .inline,
        _ handler: @escaping @Sendable (any Error) throws -> Deferred<Success, any Error>
    ) -> Deferred {
        link(hopping: X.self != InlineExecutor.self, to: Deferred.self) { source, target, trampoline, arriving in
            let typed = unsafeDowncast(target, to: Deferred.self)
            switch unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped {
            case .success(let value):
                typed.settle(.success(value), trampoline)
            case .failure(let error):
                if X.self != InlineExecutor.self, arriving { return Deferred.hop(source, target, executor) }
                do {
                    return typed.follow(try handler(error), trampoline)
                } catch {
                    typed.settle(.failure(error), trampoline)
                }
            }
            return .done
        }
    }

    /// Adds a callback for the failure.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - handler: Gets the failure; a value skips it. A thrown error is the new failure.
    /// - Returns: This Deferred's value, or the outcome of the closure's Deferred; until then, the chain pauses.
    @inlinable
    @discardableResult
    public func fail<E: Error, X: CallbackExecutor>(
        on executor: X = .inline,
        _ handler: @escaping @Sendable (any Error) throws -> Deferred<Success, E>
    ) -> Deferred {
        link(hopping: X.self != InlineExecutor.self, to: Deferred.self) { source, target, trampoline, arriving in
            let typed = unsafeDowncast(target, to: Deferred.self)
            switch unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped {
            case .success(let value):
                typed.settle(.success(value), trampoline)
            case .failure(let error):
                if X.self != InlineExecutor.self, arriving { return Deferred.hop(source, target, executor) }
                do {
                    return typed.follow(try handler(error), trampoline)
                } catch {
                    typed.settle(.failure(error), trampoline)
                }
            }
            return .done
        }
    }

    /// Adds a callback for any outcome.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - body: Gets the outcome. A thrown error becomes the failure.
    /// - Returns: The closure's result.
    @inlinable
    @_disfavoredOverload
    @discardableResult
    public func both<U, X: CallbackExecutor>(
        on executor: X = .inline,
        _ body: @escaping @Sendable (Outcome) throws -> U
    ) -> Deferred<U, any Error> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            if X.self != InlineExecutor.self, arriving { return Deferred.hop(source, target, executor) }
            let typed = unsafeDowncast(target, to: Deferred<U, any Error>.self)
            do {
                typed.settle(
                    .success(try body(unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped)),
                    trampoline
                )
            } catch {
                typed.settle(.failure(error), trampoline)
            }
            return .done
        }
    }

    /// Adds a callback for any outcome.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - body: Gets the outcome. A thrown error becomes the failure.
    /// - Returns: The outcome of the closure's Deferred; until then, the chain pauses.
    @inlinable
    @discardableResult
    public func both<U, X: CallbackExecutor>(
        on executor: X = .inline,
        _ body: @escaping @Sendable (Outcome) throws -> Deferred<U, any Error>
    ) -> Deferred<U, any Error> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            if X.self != InlineExecutor.self, arriving { return Deferred.hop(source, target, executor) }
            let typed = unsafeDowncast(target, to: Deferred<U, any Error>.self)
            do {
                return typed.follow(
                    try body(unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped), trampoline)
            } catch {
                typed.settle(.failure(error), trampoline)
            }
            return .done
        }
    }

    /// Adds a callback for any outcome.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - body: Gets the outcome. A thrown error becomes the failure.
    /// - Returns: The outcome of the closure's Deferred; until then, the chain pauses.
    @inlinable
    @discardableResult
    public func both<U, E: Error, X: CallbackExecutor>(
        on executor: X = .inline,
        _ body: @escaping @Sendable (Outcome) throws -> Deferred<U, E>
    ) -> Deferred<U, any Error> {
        link(hopping: X.self != InlineExecutor.self) { source, target, trampoline, arriving in
            if X.self != InlineExecutor.self, arriving { return Deferred.hop(source, target, executor) }
            let typed = unsafeDowncast(target, to: Deferred<U, any Error>.self)
            do {
                return typed.follow(
                    try body(unsafeDowncast(source, to: Deferred.self).storage.unsafelyUnwrapped), trampoline)
            } catch {
                typed.settle(.failure(error), trampoline)
            }
            return .done
        }
    }
}
