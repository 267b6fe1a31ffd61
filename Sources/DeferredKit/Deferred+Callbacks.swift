// In every step the check on the executor's type is decided by the compiler: `.inline` leaves nothing of it.
//
// A callback that returns a Deferred comes in two forms that look alike, and differ in the `follow` that their types choose.
// Where the inner Deferred has the same types, its outcome is taken as it is, and a loop of such links keeps only two of
// them alive (see `stepAside`); one with another type of failure has to be translated by a link, which stays.

extension Deferred where Failure == any Error {
    /// Adds a callback for the value.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - body: Gets the value; a failure skips it. What it throws becomes the failure.
    /// - Returns: What the closure gives.
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
    ///   - body: Gets the value; a failure skips it. What it throws becomes the failure.
    /// - Returns: The outcome of the Deferred that the closure returned; until then the chain pauses.
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
    ///   - body: Gets the value; a failure skips it. What it throws becomes the failure.
    /// - Returns: The outcome of the Deferred that the closure returned; until then the chain pauses.
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
    ///   - handler: Gets this Deferred's failure, but not what `body` throws.
    /// - Returns: What the closure that ran gives.
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
    ///   - handler: Gets this Deferred's failure, but not what `body` throws.
    /// - Returns: The outcome of the Deferred that the closure that ran returned; until then the chain pauses.
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
    ///   - handler: Gets this Deferred's failure, but not what `body` throws.
    /// - Returns: The outcome of the Deferred that the closure that ran returned; until then the chain pauses.
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
    ///   - handler: Gets the failure; a value skips it. What it throws is the new failure.
    /// - Returns: This Deferred's value, or what the closure gives.
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
    ///   - handler: Gets the failure; a value skips it. What it throws is the new failure.
    /// - Returns: This Deferred's value, or the outcome of the Deferred that the closure returned; until then the chain
    ///   pauses.
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
    ///   - handler: Gets the failure; a value skips it. What it throws is the new failure.
    /// - Returns: This Deferred's value, or the outcome of the Deferred that the closure returned; until then the chain
    ///   pauses.
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

    /// Adds a callback for the outcome, whatever it is.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - body: Gets the outcome. What it throws becomes the failure.
    /// - Returns: What the closure gives.
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

    /// Adds a callback for the outcome, whatever it is.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - body: Gets the outcome. What it throws becomes the failure.
    /// - Returns: The outcome of the Deferred that the closure returned; until then the chain pauses.
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

    /// Adds a callback for the outcome, whatever it is.
    ///
    /// - Parameters:
    ///   - executor: Where the closure runs.
    ///   - body: Gets the outcome. What it throws becomes the failure.
    /// - Returns: The outcome of the Deferred that the closure returned; until then the chain pauses.
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
