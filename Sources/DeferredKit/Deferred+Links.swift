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

    /// Hands the step to its executor.
    @inlinable
    static func hop(
        _ source: DeferredCore,
        _ target: DeferredCore,
        _ executor: some CallbackExecutor
    ) -> Next {
        let job = ScheduledWaiter(target, from: source)
        executor.submit { job.run() }
        return .scheduled
    }

    /// The step of a Deferred that takes another's outcome unchanged.
    @inlinable static var passOn: Step {
        { source, target, trampoline, _ in
            let source = unsafeDowncast(source, to: Deferred.self)
            unsafeDowncast(target, to: Deferred.self).settle(source.storage.unsafelyUnwrapped, trampoline)
            return .done
        }
    }

    /// Takes the outcome of a closure's Deferred, now or once it has resolved.
    @inlinable
    func follow(_ inner: Deferred, _ trampoline: Trampoline.Reference) -> Next {
        let marks = inner.marks
        if marks & (Mark.resolved | Mark.delivering | Mark.failed) == Mark.resolved, inner !== self {
            settle(inner.storage.unsafelyUnwrapped, trampoline)
            return .done
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
                let source = unsafeDowncast(source, to: Deferred<Success, E>.self)
                let target = unsafeDowncast(target, to: Deferred.self)
                target.settle(source.storage.unsafelyUnwrapped.mapError { $0 }, trampoline)
                return .done
            }
        )
    }
}
