// Unchecked: `storage` is written once, under the lock of the base class, before `resolved` is published.
/// The read end of a future value, with its failure, progress and cancellation.
///
/// A Deferred resolves once. Callbacks run in the order in which they were added, each exactly once, including
/// callbacks added after the resolution. Everything here may be called from any thread.
///
/// Its producer and all references keep it alive. A Deferred keeps the links created from it alive; a link does not
/// keep its source alive.
public final class Deferred<Success: Sendable, Failure: Error>: DeferredCore, @unchecked Sendable {
    /// The outcome of a Deferred.
    public typealias Outcome = Result<Success, Failure>

    /// Set once, before `resolved`.
    @usableFromInline @exclusivity(unchecked) var storage: Outcome?

    /// The effects that cancellation can have on this type.
    @inlinable static var abilities: UInt32 {
        if Failure.self == (any Error).self { return Mark.erased | Mark.holdsCancellation }
        return Failure.self == CancellationError.self ? Mark.holdsCancellation : 0
    }

    @inlinable
    init(pending marks: UInt32, isInterested: Bool = false, step: Step? = nil) {
        storage = nil
        super.init(marks: marks | Deferred.abilities, isInterested: isInterested, step: step)
    }

    /// Creates a resolved Deferred.
    @inlinable
    public init(_ outcome: Outcome) {
        storage = outcome
        var marks = Deferred.abilities | Mark.resolved
        if case .failure = outcome { marks |= Mark.failed }
        super.init(marks: marks, step: nil)
    }

    deinit {
        if marks & (Mark.failed | Mark.looked) == Mark.failed { reportUnhandled() }
    }

    @inline(never)
    private func reportUnhandled() {
        if case .failure(let error)? = storage { UnhandledFailure.report(error) }
    }

    /// Creates a Deferred that has succeeded.
    @inlinable
    public static func succeeded(_ value: Success) -> Deferred {
        Deferred(.success(value))
    }

    /// Creates a Deferred that has failed.
    @inlinable
    public static func failed(_ error: Failure) -> Deferred {
        Deferred(.failure(error))
    }

    /// A Deferred without a producer; only cancelling it or a consumer gives it an outcome.
    @inlinable
    public static var never: Deferred {
        Deferred(pending: Mark.orphaned)
    }

    /// Runs a closure on an executor, unless the Deferred was cancelled, and thereby failed, before its turn.
    ///
    /// - Returns: The closure's result.
    @inlinable
    public static func run(
        on executor: some CallbackExecutor,
        _ work: @escaping @Sendable () throws(Failure) -> Success
    ) -> Deferred {
        let deferred = Deferred(pending: Mark.scheduled) { _, target, trampoline, _ in
            let target = unsafeDowncast(target, to: Deferred.self)
            do throws(Failure) {
                target.settle(.success(try work()), trampoline)
            } catch {
                target.settle(.failure(error), trampoline)
            }
            return .done
        }
        let job = ScheduledWaiter(deferred, from: deferred)
        executor.submit { job.run() }
        return deferred
    }

    /// Whether there is an outcome.
    ///
    /// Unlike ``outcome``, this does not mark a failure as handled, so use it for polling.
    @inlinable public var isResolved: Bool {
        if marks & Mark.forwarded != 0 { stepBack() }
        return marks & Mark.resolved != 0
    }

    /// The outcome, if there is one; this never waits.
    ///
    /// Reading a failure here counts as handling it: it is no longer reported to ``UnhandledFailure``. To find out only
    /// whether there is an outcome, use ``isResolved``.
    @inlinable public var outcome: Outcome? {
        var marks = self.marks
        if marks & Mark.forwarded != 0 {
            stepBack()
            marks = self.marks
        }
        guard marks & Mark.resolved != 0 else { return nil }
        if marks & (Mark.failed | Mark.looked) == Mark.failed { look() }
        return storage
    }

    /// Cancels this Deferred, even if it has consumers, and withdraws its interest from its upstream.
    ///
    /// Cancellation acts on the topmost Deferred without another interested consumer. Its promise's `onCancel` runs
    /// once, on this thread. If that does not resolve it and `Failure` is `any Error`, it fails with a
    /// `CancellationError`, and the failure flows down the chain. With a typed `Failure`, the producer decides the
    /// outcome. If other consumers still want the upstream's outcome, only this Deferred fails, at once. Cancelling a
    /// resolved Deferred has no effect.
    @inlinable
    public func cancel() {
        if marks & Mark.resolved == 0 { abandon() }
    }

    // MARK: - Resolving

    /// The outcome of a resolved Deferred of this type.
    @inlinable
    static func result(of core: DeferredCore) -> Outcome {
        unsafeDowncast(core, to: Deferred.self).storage.unsafelyUnwrapped
    }

    /// Resolves unless one of the marks of `barrier` is set.
    ///
    /// - Parameter trampoline: The calling thread's, if known.
    @inlinable
    @discardableResult
    func settle(
        _ outcome: Outcome,
        _ trampoline: Trampoline.Reference?,
        unless barrier: UInt32 = Mark.resolved
    ) -> Bool {
        var marks = lock()
        guard marks & barrier == 0 else {
            unlock(marks)
            return false
        }
        storage = outcome
        marks |= Mark.resolved
        if case .failure = outcome { marks |= Mark.failed }
        if head == nil, extras == nil {
            unlock(marks)
        } else {
            publish(marks, trampoline)
        }
        return true
    }

    override func fail(with error: any Error, unless barrier: UInt32, _ trampoline: Trampoline.Reference) -> Bool {
        guard let failure = error as? Failure else { return false }
        return settle(.failure(failure), trampoline, unless: barrier)
    }

    override var failure: (any Error)? {
        if case .failure(let error)? = storage { error } else { nil }
    }
}
