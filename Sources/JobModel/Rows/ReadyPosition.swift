/// A position in the starting order of a queue.
package struct ReadyPosition: Sendable, Hashable, Comparable {
    package let priority: Int
    package let id: JobID

    package init(priority: Int, id: JobID) {
        self.priority = priority
        self.id = id
    }

    package static func < (left: ReadyPosition, right: ReadyPosition) -> Bool {
        left.priority == right.priority ? left.id < right.id : left.priority > right.priority
    }
}
