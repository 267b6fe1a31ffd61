/// Reads the `%20` of URLs.
enum PercentDecoding {
    /// The text that `part` of a URL stands for, or nil where it is not well-formed or not UTF-8.
    static func decode(_ part: String) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(part.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2, let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16),
                digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit })
            else { return nil }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
