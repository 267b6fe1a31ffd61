/// The write end of a ``Deferred``.
///
/// Copies of a promise are the same promise. One that is dropped unresolved leaves its Deferred unresolved: unless
/// somebody holds that, its callbacks are released, and cancelling what waited for it fails that at once. A handler can
/// be told of it: see ``BrokenPromise``.
public struct Promise<Success: Sendable, Failure: Error>: Sendable {
    @usableFromInline let core: Deferred<Success, Failure>
    /// Reports the promise if it is broken; nil unless somebody wants to know.
    @usableFromInline let watch: PromiseWatch?

    /// Creates a promise with a Deferred that is not resolved.
    ///
    /// - Parameters:
    ///   - onCancel: Called at most once, on the thread that cancels, when nobody wants the outcome any more. It stops
    ///     the work, and may resolve the promise with what cancellation means here; if it does not and `Failure` is
    ///     `any Error`, the Deferred fails with a `CancellationError`. It is released at resolution.
    ///   - file: Where the promise is made, for ``BrokenPromise``.
    ///   - line: The line there.
    @inlinable
    public init(
        onCancel: (@Sendable (Promise) -> Void)? = nil,
        file: StaticString = #fileID,
        line: UInt = #line
    ) {
        core = Deferred(pending: 0)
        watch = BrokenPromise.watch(core, file, line)
        if let onCancel {
            let extras = DeferredExtras()
            // It does not keep the promise from being dropped, but is given the promise as long as that is there.
            extras.onCancel = { [weak watch] in
                onCancel(Promise(unsafeDowncast($0, to: Deferred<Success, Failure>.self), watch))
            }
            core.extras = extras
        }
    }

    /// Creates a promise with a Deferred that is not resolved, where nobody knows where it is made.
    ///
    /// - Parameter onCancel: The same as that of ``init(onCancel:file:line:)``.
    @inlinable
    @_disfavoredOverload
    public init(onCancel: (@Sendable (Promise) -> Void)? = nil) {
        self.init(onCancel: onCancel, file: "unknown", line: 0)
    }

    @usableFromInline
    init(_ core: Deferred<Success, Failure>, _ watch: PromiseWatch? = nil) {
        self.core = core
        self.watch = watch
    }

    /// The read end.
    @inlinable public var deferred: Deferred<Success, Failure> { core }

    /// Resolves the Deferred and runs its callbacks on this thread, those that are inline.
    ///
    /// - Parameter outcome: What to resolve with.
    /// - Returns: False if it was resolved, or bound to another Deferred, before; then nothing changes.
    @inlinable
    @discardableResult
    public func resolve(_ outcome: Result<Success, Failure>) -> Bool {
        core.settle(outcome, nil, unless: Mark.resolved | Mark.committed)
    }

    /// Resolves the Deferred with a value.
    ///
    /// - Parameter value: What to succeed with.
    /// - Returns: False if it was resolved, or bound to another Deferred, before; then nothing changes.
    @inlinable
    @discardableResult
    public func succeed(_ value: Success) -> Bool {
        resolve(.success(value))
    }

    /// Resolves the Deferred with a failure.
    ///
    /// - Parameter error: What to fail with.
    /// - Returns: False if it was resolved, or bound to another Deferred, before; then nothing changes.
    @inlinable
    @discardableResult
    public func fail(_ error: Failure) -> Bool {
        resolve(.failure(error))
    }

    /// Binds the Deferred to another one, whose outcome and progress become its own, on the thread that delivers them.
    ///
    /// From now on `resolve`, `succeed` and `fail` return false; if they did already, nothing changes. A promise
    /// that is bound to itself, also by way of others, fails with a ``CycleError``, or is a precondition failure
    /// where `Failure` cannot hold one.
    ///
    /// - Parameter other: The Deferred to wait for; cancellation goes on to it.
    @inlinable
    public func resolve(with other: Deferred<Success, Failure>) {
        Trampoline.enter { trampoline in
            core.bind(to: Following(other, isTransparent: true, Deferred<Success, Failure>.passOn), trampoline)
        }
    }

    /// Reports how far the work is. After resolution it is ignored.
    ///
    /// Those who look on inline, also further down the chain, are told on this thread.
    ///
    /// - Parameter progress: The latest state; it is passed on if it differs from the one before.
    public func report(_ progress: ProgressUpdate) {
        core.report(progress)
    }

    /// Whether cancellation came this way. A producer that polls may stop its work then.
    public var isCancelled: Bool { core.marks & Mark.cancelled != 0 }

    /// Binds the Deferred as ``resolve(with:)`` does; if it is too late for that, `inner` has one consumer less.
    func follow(_ inner: Deferred<Success, Failure>) {
        Trampoline.enter { trampoline in
            let following = Following(inner, isTransparent: true, Deferred<Success, Failure>.passOn)
            if !core.bind(to: following, trampoline) { inner.loseConsumer(trampoline) }
        }
    }
}
