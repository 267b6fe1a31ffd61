/// A job that a spec waits for, and the place that names it.
package struct NamedJob: Sendable, Hashable {
    package let id: JobID
    package let pointer: JSONPointer
}
