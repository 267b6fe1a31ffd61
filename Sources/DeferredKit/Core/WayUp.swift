/// The Deferreds that a cancellation has passed, so that it ends even if Deferreds wait for each other.
///
/// They may for a moment: when two threads bind two Deferreds to each other, both find out, but a third may cancel
/// first.
struct WayUp {
    /// One of the Deferreds it has passed, replaced by a later one every so often. A path without branches in a circle
    /// meets it.
    private var milestone: DeferredCore?
    private var steps = 0
    private var next = 1
    /// The lists it has passed, where paths branch. They are retained, so no other list gets the same identity
    /// meanwhile.
    private var lists: [ObjectIdentifier: DeferredCore] = [:]

    /// Whether to continue from this Deferred.
    mutating func passes(_ core: DeferredCore) -> Bool {
        if core === milestone { return false }
        steps += 1
        if steps == next {
            milestone = core
            next *= 2
        }
        return true
    }

    /// Whether to continue to the members of this list.
    mutating func spreads(from list: DeferredCore) -> Bool {
        lists.updateValue(list, forKey: ObjectIdentifier(list)) == nil
    }
}
