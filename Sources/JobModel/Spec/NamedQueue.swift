/// A queue that a part of a spec names, and where.
package struct NamedQueue: Sendable, Hashable {
    package let name: String
    package let pointer: JSONPointer

    package init(name: String, pointer: JSONPointer) {
        self.name = name
        self.pointer = pointer
    }
}
