/// Why bytes are not JSON: a sentence and the offset of the byte it is about.
public struct JSONSyntaxError: Error, Equatable {
    /// What is wrong, as a clause.
    public let reason: String
    /// Where, in bytes from the beginning.
    public let offset: Int
    /// Whether the values are no syntax error but too many.
    package let isTooLarge: Bool

    package init(_ reason: String, at offset: Int, isTooLarge: Bool = false) {
        self.reason = reason
        self.offset = offset
        self.isTooLarge = isTooLarge
    }
}

extension JSONSyntaxError: CustomStringConvertible {
    /// The reason with its offset.
    public var description: String { "\(reason) at byte \(offset)" }
}
