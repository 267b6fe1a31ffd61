/// The result of running a waiter.
@usableFromInline
enum Next {
    /// The waiter is done.
    case done
    /// The waiter is with its executor.
    case scheduled
    /// The waiter waits for another Deferred, whose outcome `step` passes on.
    case follow(Following)
}

/// The next Deferred that a link must wait for.
@usableFromInline
struct Following {
    @usableFromInline let inner: DeferredCore
    /// Whether both have the same type and the step changes nothing.
    @usableFromInline let isTransparent: Bool
    @usableFromInline let step: DeferredCore.Step

    @inlinable
    init(_ inner: DeferredCore, isTransparent: Bool, _ step: @escaping DeferredCore.Step) {
        self.inner = inner
        self.isTransparent = isTransparent
        self.step = step
    }
}
