/// The write end of a ``Deferred``.
///
/// Copies of a promise are the same promise. A promise that is dropped unresolved leaves its Deferred unresolved:
/// unless the Deferred is referenced, its callbacks are released, and cancelling a consumer fails that consumer at
/// once. A handler can report dropped promises: see ``BrokenPromise``.
public struct Promise<Success: Sendable, Failure: Error>: Sendable {
    @usableFromInline let core: Deferred<Success, Failure>
    /// Reports a broken promise; nil without a handler.
    @usableFromInline let watch: PromiseWatch?

    /// Creates a promise with an unresolved Deferred.
    ///
    /// - Parameters:
    ///   - onCancel: Called at most once, on the cancelling thread, when no consumer wants the outcome any more. It
    ///     stops the work, and may resolve the promise with an outcome of its own; if it does not and `Failure` is `any
    ///     Error`, the Deferred fails with a `CancellationError`. It is released at resolution.
    ///   - file: Where the promise is made, for ``BrokenPromise``.
    ///   - line: The line in that file.
    @inlinable
    public init(onCancel: (@Sendable (Promise) -> Void)? = nil, file: StaticString = #fileID, line: UInt = #line) {
        core = Deferred(pending: 0)
        watch = BrokenPromise.watch(core, file, line)
        if let onCancel {
            let extras = DeferredExtras()
            // The closure does not retain the promise, but receives it while it exists.
            extras.onCancel = { [weak watch] in
                onCancel(Promise(unsafeDowncast($0, to: Deferred<Success, Failure>.self), watch))
            }
            core.extras = extras
        }
    }

    /// Creates a promise like ``init(onCancel:file:line:)``, without recording its location.
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

    /// Resolves the Deferred and runs its inline callbacks on this thread.
    ///
    /// - Returns: False if the promise was already resolved or bound to another Deferred; then nothing changes.
    @inlinable
    @discardableResult
    public func resolve(_ outcome: Result<Success, Failure>) -> Bool {
        core.settle(outcome, nil, unless: Mark.resolved | Mark.committed)
    }

    /// Resolves the Deferred with a value.
    ///
    /// - Returns: False if the promise was already resolved or bound to another Deferred; then nothing changes.
    @inlinable
    @discardableResult
    public func succeed(_ value: Success) -> Bool {
        resolve(.success(value))
    }

    /// Resolves the Deferred with a failure.
    ///
    /// - Returns: False if the promise was already resolved or bound to another Deferred; then nothing changes.
    @inlinable
    @discardableResult
    public func fail(_ error: Failure) -> Bool {
        resolve(.failure(error))
    }

    /// Binds the Deferred to another one, whose outcome and progress it takes over, on the thread that delivers them.
    ///
    /// From then on, `resolve`, `succeed` and `fail` return false; if they already did, nothing changes. A promise that
    /// is bound to itself, directly or through others, fails with a ``CycleError``, or is a precondition failure if
    /// `Failure` cannot hold that error.
    ///
    /// - Parameter other: The Deferred to wait for, which cancellation is passed on to.
    @inlinable
    public func resolve(with other: Deferred<Success, Failure>) {
        Trampoline.enter { trampoline in
            core.bind(to: Following(other, isTransparent: true, Deferred<Success, Failure>.passOn), trampoline)
        }
    }

    /// Reports progress; ignored after resolution.
    ///
    /// Inline observers, including those further down the chain, are called on this thread.
    ///
    /// - Parameter progress: The latest state; it is passed on if it has changed.
    public func report(_ progress: ProgressUpdate) {
        core.report(progress)
    }

    /// Whether cancellation has reached this promise. A producer that polls may then stop its work.
    public var isCancelled: Bool { core.marks & Mark.cancelled != 0 }

    /// Binds the Deferred like ``resolve(with:)``, but passes an earlier cancellation on to `inner`.
    func follow(_ inner: Deferred<Success, Failure>) {
        Trampoline.enter { trampoline in
            let following = Following(inner, isTransparent: true, Deferred<Success, Failure>.passOn)
            if !core.bind(to: following, passesOn: true, trampoline) { inner.loseConsumer(trampoline) }
        }
    }
}
