import Glibc
import JobModel

/// An IPv4 or IPv6 address as its bytes.
package struct IPAddress: Sendable, Hashable {
    /// Its bytes; those of version 4 are the first four.
    let value: SIMD16<UInt8>
    package let isVersion4: Bool

    /// `bytes` are four or sixteen.
    package init(bytes: [UInt8]) {
        var value = SIMD16<UInt8>(repeating: 0)
        for (index, byte) in bytes.prefix(16).enumerated() { value[index] = byte }
        self.value = value
        isVersion4 = bytes.count == 4
    }

    /// Reads all spellings that `getaddrinfo` accepts: inet_pton(3) for version 6, and inet_aton(3) for version 4, with
    /// one to four decimal, octal or hexadecimal numbers.
    package init?(_ text: some StringProtocol) {
        // The system's functions end at a NUL, and inet_aton at a space.
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
        let text = String(text)
        let isVersion4 = !text.utf8.contains(UInt8(ascii: ":"))
        var value = SIMD16<UInt8>(repeating: 0)
        // Into bytes, as NIO includes the same C headers and the compiler may take `in_addr` for that of NIO's module.
        let isRead = withUnsafeMutableBytes(of: &value) { bytes in
            isVersion4
                ? inet_aton(text, bytes.baseAddress?.assumingMemoryBound(to: in_addr.self)) != 0
                : inet_pton(AF_INET6, text, bytes.baseAddress) == 1
        }
        guard isRead else { return nil }
        self.value = value
        self.isVersion4 = isVersion4
    }

    package var bytes: [UInt8] { value.indices.prefix(isVersion4 ? 4 : 16).map { value[$0] } }

    /// The addresses at which a connection to this one may end: itself, and addresses that it embeds or stands for.
    package var aliases: [IPAddress] {
        if isVersion4 { return value == SIMD16() ? [self, IPAddress(bytes: [127, 0, 0, 1])] : [self] }
        let bytes = bytes
        let tail = IPAddress(bytes: Array(bytes[12...]))
        if bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF { return [self] + tail.aliases }
        if bytes[..<12].allSatisfy({ $0 == 0 }) {
            let isUnspecified = tail.bytes == [0, 0, 0, 0]
            return isUnspecified
                ? [self, IPAddress(bytes: [UInt8](repeating: 0, count: 15) + [1])] + tail.aliases : [self, tail]
        }
        // NAT64, SIIT and 6to4 carry packets to an embedded IPv4 address.
        if bytes[..<12] == [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0] { return [self] + tail.aliases }
        if bytes[..<6] == [0, 0x64, 0xFF, 0x9B, 0, 1] {
            // The prefix of a translator has 48, 56, 64 or 96 bits, and byte 8 is skipped (RFC 6052).
            let embedded = [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12]].map { $0.map { bytes[$0] } }
            return [self] + tail.aliases + embedded.flatMap { IPAddress(bytes: $0).aliases }
        }
        // Teredo embeds the IPv4 address of its server, and the inverted one of the client.
        if bytes[..<4] == [0x20, 0x01, 0, 0] {
            let client = bytes[12...].map { ~$0 }
            return [self] + IPAddress(bytes: Array(bytes[4..<8])).aliases + IPAddress(bytes: client).aliases
        }
        if bytes[..<12] == [0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0] { return [self] + tail.aliases }
        if bytes[..<2] == [0x20, 0x02] { return [self] + IPAddress(bytes: Array(bytes[2..<6])).aliases }
        return [self]
    }
}

extension IPAddress: CustomStringConvertible {
    /// The usual form: inet_ntop(3).
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
