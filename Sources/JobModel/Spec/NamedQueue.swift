/// A queue named in a spec, and the place that names it.
package struct NamedQueue: Sendable, Hashable {
    package let name: String
    package let pointer: JSONPointer

    package init(name: String, pointer: JSONPointer) {
        self.name = name
        self.pointer = pointer
    }
}
