// Unchecked: it adds no field.
/// A callback that only looks on.
@usableFromInline
class ObservingWaiter: DeferredWaiter, @unchecked Sendable {
    /// Stops waiting and releases the closure.
    final func retire() {
        _ = leave(unlinking: true)
        finish()
    }

    override final func orphan() {
        finish()
    }

    /// Releases the closure and lets nothing begin any more.
    func finish() {
        preconditionFailure("every kind of observer has its own closure")
    }
}
