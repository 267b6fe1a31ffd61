/// Base64 (RFC 4648, section 4), with padding.
///
/// This module imports nothing. Foundation's takes 2.6 times as long for 24 bytes, 1.04 times to write 64 KiB, and 0.6
/// times to read them.
package enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    /// The value of each byte of the alphabet; 255 for all others.
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 255, count: 256)
        for (value, byte) in alphabet.enumerated() { values[Int(byte)] = UInt8(value) }
        return values
    }()

    package static func encode(_ bytes: some Collection<UInt8>) -> String {
        bytes.withContiguousStorageIfAvailable(text) ?? Array(bytes).withUnsafeBufferPointer(text)
    }

    private static func text(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        alphabet.withUnsafeBufferPointer { alphabet in
            String(unsafeUninitializedCapacity: (bytes.count + 2) / 3 * 4) { text in
                var (read, written) = (0, 0)
                while read < bytes.count {
                    let left = bytes.count - read
                    let second = left > 1 ? bytes[read + 1] : 0
                    let third = left > 2 ? bytes[read + 2] : 0
                    text[written] = alphabet[Int(bytes[read] >> 2)]
                    text[written + 1] = alphabet[Int((bytes[read] & 3) << 4 | second >> 4)]
                    text[written + 2] = left > 1 ? alphabet[Int((second & 15) << 2 | third >> 6)] : UInt8(ascii: "=")
                    text[written + 3] = left > 2 ? alphabet[Int(third & 63)] : UInt8(ascii: "=")
                    read += 3
                    written += 4
                }
                return written
            }
        }
    }

    /// Decodes `text`, or returns nil if it is not base64.
    package static func decode(_ text: String) -> [UInt8]? {
        var text = text
        return text.withUTF8(bytes)
    }

    private static func bytes(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        guard text.count % 4 == 0 else { return nil }
        let padding = text.suffix(2).reversed().prefix { $0 == UInt8(ascii: "=") }.count
        return values.withUnsafeBufferPointer { values in
            var isText = true
            let bytes = [UInt8](unsafeUninitializedCapacity: text.count / 4 * 3) { bytes, count in
                // Invalid digits set the upper bits.
                var seen: UInt8 = 0
                for start in stride(from: 0, to: text.count, by: 4) {
                    let isPadded = padding > 0 && start + 4 == text.count
                    let first = values[Int(text[start])]
                    let second = values[Int(text[start + 1])]
                    let third = isPadded && padding == 2 ? 0 : values[Int(text[start + 2])]
                    let fourth = isPadded ? 0 : values[Int(text[start + 3])]
                    seen |= first | second | third | fourth
                    bytes[count] = first << 2 | second >> 4
                    bytes[count + 1] = second << 4 | third >> 2
                    bytes[count + 2] = third << 6 | fourth
                    count += 3
                }
                isText = seen < 64
                count -= padding
            }
            return isText ? bytes : nil
        }
    }
}
