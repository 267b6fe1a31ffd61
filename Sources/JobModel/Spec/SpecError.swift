/// What is wrong with one member of what a client wrote.
package struct SpecError: Error, Sendable, Equatable {
    /// The member, relative to the params; a missing one by the place it would have.
    package let place: JSONPointer
    /// A sentence that says what is wrong and what is right.
    package let reason: String

    package init(_ place: JSONPointer, _ reason: String) {
        self.place = place
        self.reason = reason
    }
}
