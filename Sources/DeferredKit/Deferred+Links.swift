extension Deferred {
    /// A new Deferred whose outcome `step` computes from this one's.
    @inlinable
    func link<U, E>(
        hopping: Bool,
        to type: Deferred<U, E>.Type = Deferred<U, E>.self,
        _ step: @escaping Step
    ) -> Deferred<U, E> {
        let target = Deferred<U, E>(
            pending: Mark.interested | Mark.followsProgress | (hopping ? Mark.hops : 0),
            step: step
        )
        append(target, leaving: Mark.looked)
        return target
    }

    /// Leaves the step to its executor.
    @inlinable
    static func hop(
        _ source: DeferredCore,
        _ target: DeferredCore,
        _ executor: some CallbackExecutor
    ) -> Bool {
        guard let job = target.schedule(from: source) else { return false }
        executor.submit { job.run() }
        return true
    }

    /// The step of a Deferred that takes another's outcome as it is.
    @inlinable static var passOn: Step {
        { source, target, trampoline, _ in
            let source = unsafeDowncast(source, to: Deferred.self)
            unsafeDowncast(target, to: Deferred.self).settle(source.storage.unsafelyUnwrapped, trampoline)
            return false
        }
    }

    /// Takes the outcome of the Deferred that a closure returned, now or when it is there.
    @inlinable
    func follow(_ inner: Deferred, _ trampoline: Trampoline.Reference) {
        let marks = inner.marks
        if marks & (Mark.resolved | Mark.delivering | Mark.failed) == Mark.resolved, inner !== self {
            settle(inner.storage.unsafelyUnwrapped, trampoline)
        } else {
            pause(on: inner, commits: false, isTransparent: true, trampoline, Deferred.passOn)
        }
    }
}

extension Deferred where Failure == any Error {
    /// Takes the outcome of a Deferred with another type of failure.
    @inlinable
    func follow<E>(_ inner: Deferred<Success, E>, _ trampoline: Trampoline.Reference) {
        pause(on: inner, commits: false, isTransparent: false, trampoline) { source, target, trampoline, _ in
            let source = unsafeDowncast(source, to: Deferred<Success, E>.self)
            let target = unsafeDowncast(target, to: Deferred.self)
            target.settle(source.storage.unsafelyUnwrapped.mapError { $0 }, trampoline)
            return false
        }
    }
}
