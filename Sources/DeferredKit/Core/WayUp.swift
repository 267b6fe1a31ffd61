/// The Deferreds that a cancellation has passed, so that it ends although Deferreds wait for each other.
///
/// They may for a moment: when two threads bind two to each other, both find out, but a third may cancel before.
struct WayUp {
    /// One of those it has passed; every so often a later one. A way without branches that ends in a circle meets it.
    private var milestone: DeferredCore?
    private var steps = 0
    private var next = 1
    /// The lists it has passed, where its ways part. Kept, so that no other has the same identity meanwhile.
    private var lists: [ObjectIdentifier: DeferredCore] = [:]

    /// Whether to go on from this one.
    mutating func passes(_ core: DeferredCore) -> Bool {
        if core === milestone { return false }
        steps += 1
        if steps == next {
            milestone = core
            next *= 2
        }
        return true
    }

    /// Whether to go on to the members of this list.
    mutating func spreads(from list: DeferredCore) -> Bool {
        lists.updateValue(list, forKey: ObjectIdentifier(list)) == nil
    }
}
