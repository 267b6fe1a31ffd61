/// Why bytes are not JSON: a sentence and the offset of the byte it is about.
public struct JSONSyntaxError: Error, Equatable {
    /// What is wrong, as a clause.
    public let reason: String
    /// Where, in bytes from the beginning.
    public let offset: Int

    package init(_ reason: String, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }
}

extension JSONSyntaxError: CustomStringConvertible {
    /// The reason with its place.
    public var description: String { "\(reason) at byte \(offset)" }
}
