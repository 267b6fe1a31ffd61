extension Deferred {
    /// Returns a new Deferred whose outcome `step` computes from this one's.
    @inlinable
    func link<U, E>(
        hopping: Bool,
        to type: Deferred<U, E>.Type = Deferred<U, E>.self,
        _ step: @escaping Step
    ) -> Deferred<U, E> {
        let target = Deferred<U, E>(pending: hopping ? Mark.hops : 0, isInterested: true, step: step)
        append(target, leaving: Mark.looked)
        return target
    }

    // MARK: - Steps with a closure of the user
    //
    // The compiler decides the check on the executor's type: with `.inline`, none of it remains. `body` does not escape, so
    // it costs no allocation.

    /// Gives `body` the value on the executor; a failure skips it.
    @inlinable
    static func onValue<U, X: CallbackExecutor>(
        _ executor: X, _ source: DeferredCore, _ target: DeferredCore, _ trampoline: Trampoline.Reference,
        _ arriving: Bool, _ body: (Success, Deferred<U, Failure>) throws(Failure) -> Next
    ) -> Next {
        let typed = unsafeDowncast(target, to: Deferred<U, Failure>.self)
        switch Deferred.result(of: source) {
        case .success(let value):
            if X.self != InlineExecutor.self, arriving { return hop(source, target, executor) }
            do throws(Failure) { return try body(value, typed) } catch { return typed.end(.failure(error), trampoline) }
        case .failure(let error): return typed.end(.failure(error), trampoline)
        }
    }

    /// Gives `body` the failure on the executor; a value skips it.
    @inlinable
    static func onFailure<E, X: CallbackExecutor>(
        _ executor: X, _ source: DeferredCore, _ target: DeferredCore, _ trampoline: Trampoline.Reference,
        _ arriving: Bool, _ body: (Failure, Deferred<Success, E>) throws(E) -> Next
    ) -> Next {
        let typed = unsafeDowncast(target, to: Deferred<Success, E>.self)
        switch Deferred.result(of: source) {
        case .success(let value): return typed.end(.success(value), trampoline)
        case .failure(let error):
            if X.self != InlineExecutor.self, arriving { return hop(source, target, executor) }
            do throws(E) { return try body(error, typed) } catch { return typed.end(.failure(error), trampoline) }
        }
    }

    /// Gives `body` the outcome on the executor.
    @inlinable
    static func onOutcome<U, E, X: CallbackExecutor>(
        _ executor: X, _ source: DeferredCore, _ target: DeferredCore, _ trampoline: Trampoline.Reference,
        _ arriving: Bool, _ body: (Outcome, Deferred<U, E>) throws(E) -> Next
    ) -> Next {
        if X.self != InlineExecutor.self, arriving { return hop(source, target, executor) }
        let typed = unsafeDowncast(target, to: Deferred<U, E>.self)
        do throws(E) {
            return try body(Deferred.result(of: source), typed)
        } catch {
            return typed.end(.failure(error), trampoline)
        }
    }

    /// Ends a step with an outcome.
    @inlinable
    func end(_ outcome: Outcome, _ trampoline: Trampoline.Reference) -> Next {
        settle(outcome, trampoline)
        return .done
    }

    /// Hands the step to its executor.
    @inlinable
    static func hop(_ source: DeferredCore, _ target: DeferredCore, _ executor: some CallbackExecutor) -> Next {
        let job = ScheduledWaiter(target, from: source)
        executor.submit { job.run() }
        return .scheduled
    }

    /// The step of a Deferred that takes another's outcome unchanged.
    @inlinable static var passOn: Step {
        { source, target, trampoline, _ in
            unsafeDowncast(target, to: Deferred.self).end(Deferred.result(of: source), trampoline)
        }
    }

    /// Takes the outcome of a closure's Deferred, now or once it has resolved.
    @inlinable
    func follow(_ inner: Deferred, _ trampoline: Trampoline.Reference) -> Next {
        let marks = inner.marks
        if marks & (Mark.resolved | Mark.delivering | Mark.failed) == Mark.resolved, inner !== self {
            return end(inner.storage.unsafelyUnwrapped, trampoline)
        }
        return .follow(Following(inner, isTransparent: true, Deferred.passOn))
    }
}

extension Deferred where Failure == any Error {
    /// Takes the outcome of a Deferred with another type of failure.
    @inlinable
    func follow<E>(_ inner: Deferred<Success, E>, _ trampoline: Trampoline.Reference) -> Next {
        .follow(
            Following(inner, isTransparent: false) { source, target, trampoline, _ in
                let outcome = Deferred<Success, E>.result(of: source)
                return unsafeDowncast(target, to: Deferred.self).end(outcome.mapError { $0 }, trampoline)
            }
        )
    }
}
