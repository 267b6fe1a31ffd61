/// A JSON number as the digits it was written with, so that it goes out as it came in.
public struct JSONNumber: Sendable, Hashable {
    /// The number in JSON's own notation.
    public let text: String

    /// A number already known to be written as JSON writes numbers.
    package init(unchecked text: String) {
        self.text = text
    }

    /// A whole number.
    public init(_ value: Int) {
        text = String(value)
    }

    /// A number with a fraction, or nil for infinities and NaN. Whole values up to 2^53 are written without one.
    public init?(_ value: Double) {
        guard value.isFinite else { return nil }
        if value.rounded() == value, abs(value) <= 9_007_199_254_740_992 {
            text = String(Int64(value))
        } else {
            text = "\(value)"
        }
    }

    /// The value where it is whole (`3`, `3.0`, `3e2`) and fits.
    public var int: Int? {
        if let value = Int(text) { return value }
        // From 2^53 on the nearest binary value can be another number than the one that was written.
        guard let value = Double(text), value.rounded() == value, abs(value) < 9_007_199_254_740_992 else {
            return nil
        }
        return Int(value)
    }

    /// The nearest binary value; infinite where the text is too large for one.
    public var double: Double { Double(text) ?? .nan }
}
