import Glibc

/// An IPv4 or IPv6 address as its bytes.
package struct IPAddress: Sendable, Hashable {
    /// Four or sixteen bytes.
    package let bytes: [UInt8]

    package init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The address that `text` writes, in any spelling that `getaddrinfo` would take for one: what inet_pton(3) reads of
    /// version 6, and inet_aton(3) of version 4, which has one to four numbers in decimal, octal or hexadecimal digits.
    package init?(_ text: some StringProtocol) {
        // The system's functions end at a NUL, and inet_aton at a space.
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
        let text = String(text)
        if text.utf8.contains(UInt8(ascii: ":")) {
            var bytes = [UInt8](repeating: 0, count: 16)
            guard inet_pton(AF_INET6, text, &bytes) == 1 else { return nil }
            self.bytes = bytes
        } else {
            var bytes = [UInt8](repeating: 0, count: 4)
            // Into bytes, as NIO includes the same C headers and the compiler may take `in_addr` for that of NIO's module.
            let isRead = bytes.withUnsafeMutableBytes { bytes in
                inet_aton(text, bytes.baseAddress?.assumingMemoryBound(to: in_addr.self)) != 0
            }
            guard isRead else { return nil }
            self.bytes = bytes
        }
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
        if bytes[..<6] == [0, 0x64, 0xFF, 0x9B, 0, 1] {
            // A translator's own prefix has 48, 56, 64 or 96 bits, and byte 8 is skipped (RFC 6052).
            let embedded = [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12]].map { $0.map { bytes[$0] } }
            return [self] + tail.aliases + embedded.flatMap { IPAddress(bytes: $0).aliases }
        }
        // Teredo has the IPv4 address of its server, and inverted that of the client.
        if bytes[..<4] == [0x20, 0x01, 0, 0] {
            let client = bytes[12...].map { ~$0 }
            return [self] + IPAddress(bytes: Array(bytes[4..<8])).aliases + IPAddress(bytes: client).aliases
        }
        if bytes[..<12] == [0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0] { return [self] + tail.aliases }
        if bytes[..<2] == [0x20, 0x02] { return [self] + IPAddress(bytes: Array(bytes[2..<6])).aliases }
        return [self]
    }

    /// Whether a host name whose last label is `label` can only be meant as an address: decimal digits, or hexadecimal ones
    /// behind `0x`.
    static func looksNumeric(_ label: some StringProtocol) -> Bool {
        if label.hasPrefix("0x") || label.hasPrefix("0X") { return label.utf8.dropFirst(2).allSatisfy(isHexadecimal) }
        return !label.isEmpty && label.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte | 0x20)
    }
}

extension IPAddress: CustomStringConvertible {
    /// Four decimal numbers, or groups with the longest run of zeros left out as RFC 5952 says: inet_ntop(3).
    package var description: String {
        var text = [UInt8](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let isWritten = text.withUnsafeMutableBytes { text in
            inet_ntop(
                isVersion4 ? AF_INET : AF_INET6, bytes, text.baseAddress?.assumingMemoryBound(to: CChar.self),
                socklen_t(text.count)) != nil
        }
        return isWritten ? String(decoding: text.prefix { $0 != 0 }, as: UTF8.self) : ""
    }
}
