/// An IPv4 or IPv6 address as its bytes.
package struct IPAddress: Sendable, Hashable {
    /// Four or sixteen bytes.
    package let bytes: [UInt8]

    package init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The address that `text` writes, in any spelling that `getaddrinfo` would take for one.
    package init?(_ text: some StringProtocol) {
        guard let bytes = Self.version4(text) ?? Self.version6(text) else { return nil }
        self.bytes = bytes
    }

    package var isVersion4: Bool { bytes.count == 4 }

    /// The addresses that a connection to this one may end at: itself and what it embeds or stands for.
    package var aliases: [IPAddress] {
        if isVersion4 { return bytes == [0, 0, 0, 0] ? [self, IPAddress(bytes: [127, 0, 0, 1])] : [self] }
        let tail = IPAddress(bytes: Array(bytes[12...]))
        if bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF { return [self] + tail.aliases }
        if bytes[..<12].allSatisfy({ $0 == 0 }) {
            let isUnspecified = tail.bytes == [0, 0, 0, 0]
            return isUnspecified
                ? [self, IPAddress(bytes: [UInt8](repeating: 0, count: 15) + [1])] + tail.aliases : [self, tail]
        }
        // NAT64, SIIT and 6to4 carry packets to the IPv4 address that they embed.
        if bytes[..<12] == [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0] { return [self] + tail.aliases }
        if bytes[..<6] == [0, 0x64, 0xFF, 0x9B, 0, 1] { return [self] + tail.aliases }
        if bytes[..<12] == [0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0] { return [self] + tail.aliases }
        if bytes[..<2] == [0x20, 0x02] { return [self] + IPAddress(bytes: Array(bytes[2..<6])).aliases }
        return [self]
    }

    /// One to four numbers in decimal, octal (`0`) or hexadecimal (`0x`); the last fills the bytes that are left.
    private static func version4(_ text: some StringProtocol) -> [UInt8]? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard (1...4).contains(parts.count) else { return nil }
        var bytes: [UInt8] = []
        for (index, part) in parts.enumerated() {
            guard let number = number(part) else { return nil }
            let width = index == parts.count - 1 ? 4 - index : 1
            guard number < UInt64(1) << (8 * UInt64(width)) else { return nil }
            for shift in stride(from: 8 * (width - 1), through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(shift)))
            }
        }
        return bytes
    }

    /// Whether a host name whose last label is `label` can only be meant as an address.
    static func looksNumeric(_ label: some StringProtocol) -> Bool {
        !label.isEmpty && label.utf8.allSatisfy { (48...57).contains($0) } || number(label) != nil
    }

    private static func number(_ text: some StringProtocol) -> UInt64? {
        let digits = Array(text.utf8)
        guard let first = digits.first, digits.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }) else {
            return nil
        }
        if first == UInt8(ascii: "0"), digits.count > 1 {
            if digits[1] | 0x20 == UInt8(ascii: "x") {
                return digits.count == 2 ? 0 : UInt64(text.dropFirst(2), radix: 16)
            }
            return UInt64(text.dropFirst(), radix: 8)
        }
        return UInt64(text, radix: 10)
    }

    private static func version6(_ text: some StringProtocol) -> [UInt8]? {
        var text = String(text)
        var tail: [UInt8] = []
        if let dot = text.firstIndex(of: "."), let colon = text[..<dot].lastIndex(of: ":") {
            let quad = text[text.index(after: colon)...].split(separator: ".", omittingEmptySubsequences: false)
            let bytes = quad.compactMap {
                $0.count <= 3 && $0.utf8.allSatisfy({ (48...57).contains($0) }) ? UInt8($0) : nil
            }
            guard quad.count == 4, bytes.count == 4 else { return nil }
            tail = bytes
            // The colon before the quad separates it, unless it is the second of a "::".
            let before = text[..<colon]
            text = before.hasSuffix(":") ? String(text[...colon]) : String(before)
        }
        let wanted = 8 - tail.count / 2
        let halves = text.split(separator: "::", maxSplits: 2, omittingEmptySubsequences: false)
        guard halves.count <= 2 else { return nil }
        var sides: [[UInt8]] = []
        for half in halves {
            var bytes: [UInt8] = []
            for group in half.isEmpty ? [] : half.split(separator: ":", omittingEmptySubsequences: false) {
                guard (1...4).contains(group.utf8.count), group.allSatisfy(\.isHexDigit),
                    let number = UInt16(group, radix: 16)
                else { return nil }
                bytes += [UInt8(number >> 8), UInt8(number & 0xFF)]
            }
            sides.append(bytes)
        }
        let written = sides.reduce(0) { $0 + $1.count } / 2
        guard sides.count == 2 ? written < wanted : written == wanted else { return nil }
        let gap = [UInt8](repeating: 0, count: 2 * (wanted - written))
        return sides[0] + gap + (sides.count == 2 ? sides[1] : []) + tail
    }
}

extension IPAddress: CustomStringConvertible {
    /// Four decimal numbers, or eight groups with the longest run of zeros left out as RFC 5952 says.
    package var description: String {
        if isVersion4 { return "\(bytes[0]).\(bytes[1]).\(bytes[2]).\(bytes[3])" }
        if bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF {
            return "::ffff:" + bytes[12...].map(String.init).joined(separator: ".")
        }
        let groups = stride(from: 0, to: 16, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
        var best = 0..<0
        var start = 0
        while start < 8 {
            let end = groups[start...].firstIndex { $0 != 0 } ?? 8
            if end - start > max(1, best.count) { best = start..<end }
            start = end + 1
        }
        func text(_ range: Range<Int>) -> String {
            groups[range].map { String($0, radix: 16) }.joined(separator: ":")
        }
        return best.isEmpty ? text(0..<8) : text(0..<best.lowerBound) + "::" + text(best.upperBound..<8)
    }
}
