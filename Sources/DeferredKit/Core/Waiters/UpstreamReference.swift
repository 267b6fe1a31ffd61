/// A waiter's reference to the Deferred whose list contains it.
///
/// It does not keep the Deferred alive: a Deferred keeps its links, not the reverse. It is read and changed under the
/// waiter's lock, and reading it returns a counted reference. The stored reference need not be counted: it is set
/// exactly while the waiter is in the list, and a released Deferred first empties its list, taking each waiter's lock.
/// So under that lock the memory exists, even if the object is being released.
struct UpstreamReference {
    private var core: Unmanaged<DeferredCore>?

    mutating func set(_ core: DeferredCore) { self.core = .passUnretained(core) }

    mutating func clear() { core = nil }

    /// Returns a strong reference, or nil if the last one is gone.
    ///
    /// A weak reference to an object that is being released is nil, which answers the question.
    @inline(never)
    func revived() -> DeferredCore? {
        guard let object = core?.takeUnretainedValue() else { return nil }
        weak let weakly = object
        let strongly = weakly
        // `object` counts up to here, so an object that was alive stays alive until `strongly` counts; for an object
        // that was being released, this changes nothing. If `object` were released earlier, the object could end under
        // the lock.
        withExtendedLifetime(object) {}
        return strongly
    }
}
