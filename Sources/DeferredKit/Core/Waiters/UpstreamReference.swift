/// The way from a waiter to the Deferred in whose list it is.
///
/// It does not keep that alive: a Deferred keeps its links, not the reverse. It is read and changed under the waiter's
/// lock, and what it gives is counted. The reference in it is not, and need not be: it is set exactly as long as the
/// waiter is in the list, and a Deferred that goes empties its list first, for which it takes each waiter's lock. So
/// under that lock the memory is there, if not always the object.
struct UpstreamReference {
    private var core: Unmanaged<DeferredCore>?

    var isSet: Bool { core != nil }

    mutating func set(_ core: DeferredCore) { self.core = .passUnretained(core) }

    mutating func clear() { core = nil }

    func leads(to core: DeferredCore) -> Bool {
        self.core?.toOpaque() == Unmanaged.passUnretained(core).toOpaque()
    }

    /// A strong reference, or nil when the last one is gone.
    ///
    /// A weak reference that is formed to an object that is on its way out is nil, which is the question here.
    @inline(never)
    func revived() -> DeferredCore? {
        guard let object = core?.takeUnretainedValue() else { return nil }
        weak let weakly = object
        let strongly = weakly
        // To here `object` counts, so that an object that was alive before stays so until `strongly` counts; of one
        // that was on its way out it changes nothing. Were it gone earlier, its end could come under the lock.
        withExtendedLifetime(object) {}
        return strongly
    }
}
