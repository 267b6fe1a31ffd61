/// A job that a spec waits for, and the place that names it.
package struct NamedJob: Sendable, Hashable {
    package let id: JobID
    package let pointer: JSONPointer

    package init(id: JobID, pointer: JSONPointer) {
        self.id = id
        self.pointer = pointer
    }
}
