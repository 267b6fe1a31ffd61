/// Base64 (RFC 4648, section 4), with padding.
package enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    /// The value of each byte of the alphabet; 255 for all others.
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 255, count: 256)
        for (value, byte) in alphabet.enumerated() { values[Int(byte)] = UInt8(value) }
        return values
    }()
    private static let padding = UInt8(ascii: "=")

    package static func encode(_ bytes: [UInt8]) -> String {
        let alphabet = alphabet
        return String(unsafeUninitializedCapacity: (bytes.count + 2) / 3 * 4) { text in
            var written = 0
            for start in stride(from: 0, to: bytes.count, by: 3) {
                let left = bytes.count - start
                let second = left > 1 ? bytes[start + 1] : 0
                let third = left > 2 ? bytes[start + 2] : 0
                text[written] = alphabet[Int(bytes[start] >> 2)]
                text[written + 1] = alphabet[Int((bytes[start] & 3) << 4 | second >> 4)]
                text[written + 2] = left > 1 ? alphabet[Int((second & 15) << 2 | third >> 6)] : padding
                text[written + 3] = left > 2 ? alphabet[Int(third & 63)] : padding
                written += 4
            }
            return written
        }
    }

    /// Decodes `text`, or returns nil if it is not base64.
    package static func decode(_ text: String) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count % 4 == 0 else { return nil }
        let end = digits.count - digits.suffix(2).reversed().prefix { $0 == padding }.count
        let values = values
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 4 * 3)
        var group: UInt32 = 0
        for (index, digit) in digits.enumerated() {
            let value = index < end ? values[Int(digit)] : 0
            guard value < 64 else { return nil }
            group = group << 6 | UInt32(value)
            guard index % 4 == 3 else { continue }
            bytes.append(UInt8(truncatingIfNeeded: group >> 16))
            bytes.append(UInt8(truncatingIfNeeded: group >> 8))
            bytes.append(UInt8(truncatingIfNeeded: group))
        }
        bytes.removeLast(digits.count - end)
        return bytes
    }
}
