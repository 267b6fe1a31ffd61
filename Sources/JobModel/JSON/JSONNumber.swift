/// A JSON number that keeps its written digits.
public struct JSONNumber: Sendable, Hashable {
    /// The number in JSON notation.
    public let text: String

    /// Wraps text that is known to be a valid JSON number.
    package init(unchecked text: String) { self.text = text }

    /// Makes a whole number.
    public init(_ value: Int) { text = String(value) }

    /// Makes a number; nil for infinities and NaN, and without a fraction for whole values up to 2^53.
    public init?(_ value: Double) {
        guard value.isFinite else { return nil }
        if value.rounded() == value, abs(value) <= 9_007_199_254_740_992 {
            text = String(Int64(value))
        } else {
            text = "\(value)"
        }
    }

    /// The value if it is whole (`3`, `3.0`, `3e2`) and fits.
    public var int: Int? {
        if let value = Int(text) { return value }
        // From 2^53 on, the nearest `Double` may differ from the written number.
        guard let value = Double(text), value.rounded() == value, abs(value) < 9_007_199_254_740_992 else { return nil }
        return Int(value)
    }

    /// The nearest `Double`; infinite if the number is too large.
    public var double: Double { Double(text) ?? .nan }
}
