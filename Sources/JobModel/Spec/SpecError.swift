/// What is wrong with one member of what a client wrote.
package struct SpecError: Error, Sendable, Equatable {
    /// The member, relative to the params; a missing one by the pointer it would have.
    package let pointer: JSONPointer
    /// A sentence that says what is wrong and what is right.
    package let reason: String

    package init(_ pointer: JSONPointer, _ reason: String) {
        self.pointer = pointer
        self.reason = reason
    }
}
