/// The result of running a waiter.
@usableFromInline
enum Next {
    /// It is done.
    case done
    /// Its executor has it.
    case scheduled
    /// It waits for another Deferred, whose outcome `step` passes on.
    case follow(Following)
}

/// The Deferred that a link has to wait for next.
@usableFromInline
struct Following {
    @usableFromInline let inner: DeferredCore
    /// Both have the same type and the step changes nothing.
    @usableFromInline let isTransparent: Bool
    @usableFromInline let step: DeferredCore.Step

    @inlinable
    init(_ inner: DeferredCore, isTransparent: Bool, _ step: @escaping DeferredCore.Step) {
        self.inner = inner
        self.isTransparent = isTransparent
        self.step = step
    }
}
