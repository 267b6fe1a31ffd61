/// The Deferreds that a cancellation has passed, so that it ends even if Deferreds wait for each other.
///
/// Cycles can exist for a moment: two threads that bind two Deferreds to each other both notice, but a third may cancel
/// first.
struct WayUp {
    /// A passed Deferred, replaced by a later one at growing intervals. A cycle without branches meets it.
    private var milestone: DeferredCore?
    private var steps = 0
    private var next = 1
    /// The passed lists, where paths branch. They are retained, so that no other list gets the same identity meanwhile.
    private var lists: [ObjectIdentifier: DeferredCore] = [:]

    /// Returns whether to continue from this Deferred.
    mutating func passes(_ core: DeferredCore) -> Bool {
        if core === milestone { return false }
        steps += 1
        if steps == next {
            milestone = core
            next *= 2
        }
        return true
    }

    /// Returns whether to continue to the members of this list.
    mutating func spreads(from list: DeferredCore) -> Bool {
        lists.updateValue(list, forKey: ObjectIdentifier(list)) == nil
    }
}
