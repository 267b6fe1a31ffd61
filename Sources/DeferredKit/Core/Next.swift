/// What became of a waiter whose turn it was.
@usableFromInline
enum Next {
    /// It is through.
    case done
    /// Its executor has it.
    case scheduled
    /// It waits for another Deferred, whose outcome `step` passes on.
    case follow(Following)
}

/// What a link goes on with.
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
