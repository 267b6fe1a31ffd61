/// Percent-encoding (RFC 3986) of text for URLs, and its reverse.
package enum PercentEncoding {
    /// Returns `text` with all but unreserved bytes encoded, so it can neither end nor begin a part of a URL.
    package static func encoded(_ text: String) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            if isUnreserved(byte) { bytes.append(byte) } else { append(byte, to: &bytes) }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }

    /// Decodes a part of a URL; returns nil if it is malformed or not UTF-8.
    package static func decoded(_ text: String) -> String? {
        bytes(text).flatMap { String(validating: $0, as: UTF8.self) }
    }

    /// The bytes that a part of a URL stands for; returns nil if it is malformed.
    package static func bytes(_ text: some StringProtocol) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst()?.hexDigit, let low = rest.popFirst()?.hexDigit else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    package static func append(_ byte: UInt8, to bytes: inout [UInt8]) {
        bytes += (byte < 0x10 ? "%0" : "%").utf8
        bytes += String(byte, radix: 16, uppercase: true).utf8
    }
}
