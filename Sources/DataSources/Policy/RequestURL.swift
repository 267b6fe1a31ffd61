import CIDN
import Glibc
import JobModel

/// An absolute `scheme://host` URL, strictly parsed and written in one spelling.
///
/// The HTTP client uses only ``description``, so the policy checks exactly what is connected to. Foundation's `URL`
/// keeps the spelling of a host, such as an address in octal digits, which programs read differently.
package struct RequestURL: Sendable, Hashable {
    package enum Host: Sendable, Hashable {
        /// In lower case, without a trailing dot.
        case name(String)
        case address(IPAddress)
    }

    /// What shares credentials: scheme, host and port.
    package struct Origin: Sendable, Hashable {
        let scheme: String
        let host: Host
        let port: Int
    }

    package let scheme: String
    package let host: Host
    package let port: Int
    /// `user:password`, percent-decoded.
    package let credentials: String?
    /// Path and query, percent-encoded, with a leading slash.
    package private(set) var target: String

    package var origin: Origin { Origin(scheme: scheme, host: host, port: port) }

    /// Reads a URL; nil if it is not valid.
    ///
    /// Works on bytes: to Swift, a slash before a combining accent is another character, but to a server it is a slash.
    package init?(_ text: String) {
        var text = text
        guard let url = text.withUTF8({ RequestURL($0[...]) }) else { return nil }
        self = url
    }

    private typealias Bytes = Slice<UnsafeBufferPointer<UInt8>>

    private init?(_ bytes: Bytes) {
        guard let scheme = Self.scheme(bytes), bytes[scheme.endIndex...].starts(with: "://".utf8),
            !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F })
        else { return nil }
        let rest = bytes[(scheme.endIndex + 3)...]
        let end = rest.firstIndex { $0 == 0x2F || $0 == 0x3F || $0 == 0x23 } ?? rest.endIndex
        var authority = rest[..<end]
        // Some programs read a backslash as a slash and would see another host; in texts, a URL ends at a space or
        // quotation mark.
        guard !authority.contains(where: { $0 == 0x5C || $0 == 0x20 || $0 == 0x22 }) else { return nil }
        var credentials: String?
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
            guard let decoded = PercentEncoding.decoded(Self.text(authority[..<at])) else { return nil }
            if !decoded.isEmpty { credentials = decoded.utf8.contains(UInt8(ascii: ":")) ? decoded : decoded + ":" }
            authority = authority[(at + 1)...]
        }
        self.scheme = Self.text(scheme).lowercased()
        var port = self.scheme == "https" ? 443 : self.scheme == "socks5" ? 1080 : 80
        if let colon = authority.lastIndex(of: UInt8(ascii: ":")), !authority[colon...].contains(UInt8(ascii: "]")) {
            let digits = authority[(colon + 1)...]
            if !digits.isEmpty {
                guard digits.allSatisfy(Self.isDigit), let number = Int(Self.text(digits)),
                    (1...65_535).contains(number)
                else { return nil }
                port = number
            }
            authority = authority[..<colon]
        }
        guard let host = Self.host(authority) else { return nil }
        self.host = host
        self.port = port
        self.credentials = credentials
        target = Self.target(rest[end...])
    }

    private static func scheme(_ bytes: Bytes) -> Bytes? {
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), let first = bytes.first, isLetter(first),
            bytes[..<colon].allSatisfy({ isLetter($0) || isDigit($0) || $0 == 0x2B || $0 == 0x2D || $0 == 0x2E })
        else { return nil }
        return bytes[..<colon]
    }

    private static func text(_ bytes: Bytes) -> String { String(decoding: bytes, as: UTF8.self) }

    private static func host(_ bytes: Bytes) -> Host? {
        if bytes.first == UInt8(ascii: "[") {
            guard bytes.last == UInt8(ascii: "]") else { return nil }
            // A zone ("%25eth0") only names the interface.
            let address = bytes.dropFirst().dropLast().prefix { $0 != UInt8(ascii: "%") }
            guard address.contains(UInt8(ascii: ":")) else { return nil }
            return IPAddress(text(address)).map(Host.address)
        }
        guard bytes.allSatisfy({ $0 < 0x80 }) else {
            guard var ascii = ascii(text(bytes)), ascii.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
            return ascii.withUTF8 { host($0[...]) }
        }
        let name = bytes.last == UInt8(ascii: ".") ? bytes.dropLast() : bytes
        var label = name.startIndex
        for index in name.startIndex..<name.endIndex {
            if name[index] == UInt8(ascii: ".") {
                guard (1...63).contains(index - label) else { return nil }
                label = index + 1
            } else {
                guard isLetter(name[index]) || isDigit(name[index]) || name[index] == 0x2D || name[index] == 0x5F else {
                    return nil
                }
            }
        }
        guard (1...63).contains(name.endIndex - label), name.count <= 253 else { return nil }
        let lower = text(name).lowercased()
        if isDigit(name[label]), isNumeric(name[label...]) { return IPAddress(lower).map(Host.address) }
        return .name(lower)
    }

    /// The form of an international host name in DNS (`xn--`); nil if it has none.
    private static func ascii(_ host: String) -> String? {
        var name: UnsafeMutablePointer<UInt8>?
        guard idn2_lookup_u8(host, &name, Int32(IDN2_NONTRANSITIONAL.rawValue)) == Int32(IDN2_OK.rawValue), let name
        else { return nil }
        defer { free(name) }
        return String(cString: name)
    }

    /// Whether a host name with this last label can only be an address: decimal digits, or hexadecimal ones after `0x`.
    private static func isNumeric(_ label: Bytes) -> Bool {
        if label.starts(with: "0x".utf8) || label.starts(with: "0X".utf8) {
            return label.dropFirst(2).allSatisfy(isHexadecimal)
        }
        return label.allSatisfy(isDigit)
    }

    /// Path and query without fragment, with everything encoded that a request line may not contain.
    private static func target(_ text: Bytes) -> String {
        let source = text.prefix { $0 != UInt8(ascii: "#") }
        var bytes: [UInt8] = source.first == UInt8(ascii: "/") ? [] : [UInt8(ascii: "/")]
        bytes.reserveCapacity(source.count + 1)
        for index in source.startIndex..<source.endIndex {
            let byte = source[index]
            let isKept =
                byte == UInt8(ascii: "%")
                ? source.endIndex - index > 2 && isHexadecimal(source[index + 1]) && isHexadecimal(source[index + 2])
                : isPlain(byte)
            if isKept { bytes.append(byte) } else { PercentEncoding.append(byte, to: &bytes) }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        // Controls and the space; `"<>\^`{|}`; and bytes beyond ASCII.
        case 0...0x20, 0x22, 0x3C, 0x3E, 0x5C, 0x5E, 0x60, 0x7B...0x7D, 0x7F...: false
        default: true
        }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }
    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
    private static func isHexadecimal(_ byte: UInt8) -> Bool { isDigit(byte) || (0x61...0x66).contains(byte | 0x20) }
}

extension RequestURL {
    /// The scheme of a reference, in lower case; nil for a relative one.
    static func scheme(of reference: String) -> String? {
        var reference = String(reference.drop { $0 == " " || $0 == "\t" })
        return reference.withUTF8 { bytes in scheme(bytes[...]).map { text($0).lowercased() } }
    }

    /// The URL that a `Location` field means in a response from this one; nil if it is not valid.
    package func resolving(_ reference: String) -> RequestURL? {
        let reference = reference.drop { $0 == " " || $0 == "\t" }
        let scheme = reference.prefix { $0 != ":" && $0 != "/" && $0 != "?" && $0 != "#" }
        if reference[scheme.endIndex...].hasPrefix(":") { return RequestURL(String(reference))?.withoutDotSegments }
        if reference.hasPrefix("//") { return RequestURL("\(self.scheme):\(reference)")?.withoutDotSegments }
        let base = "\(self.scheme)://\(authority)"
        if reference.hasPrefix("/") { return RequestURL(base + reference)?.withoutDotSegments }
        let path = target.prefix { $0 != "?" }
        if reference.isEmpty || reference.hasPrefix("#") { return RequestURL(base + target) }
        if reference.hasPrefix("?") { return RequestURL(base + path + reference) }
        let directory = path[...(path.lastIndex(of: "/") ?? path.startIndex)]
        return RequestURL(base + directory + reference)?.withoutDotSegments
    }

    private var withoutDotSegments: RequestURL {
        let query = target.firstIndex(of: "?") ?? target.endIndex
        var kept: [Substring] = []
        let segments = target[..<query].split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            switch segment.lowercased() {
            case ".", "%2e":
                if isLast { kept.append("") }
            case "..", ".%2e", "%2e.", "%2e%2e":
                _ = kept.popLast()
                if isLast { kept.append("") }
            default: kept.append(segment)
            }
        }
        var url = self
        url.target = "/" + kept.joined(separator: "/") + target[query...]
        return url
    }

    /// The host as URLs write it: an IPv6 address in brackets.
    package var hostText: String { Self.text(of: host) }

    static func text(of host: Host) -> String {
        switch host {
        case .name(let name): name
        case .address(let address): address.isVersion4 ? address.description : "[\(address)]"
        }
    }

    /// Host and port, even if the port is the scheme's default.
    package var hostAndPort: String { hostText + ":" + String(port) }

    /// Host, and port unless it is the scheme's default.
    var authority: String {
        (scheme == "https" && port == 443) || (scheme == "http" && port == 80) ? hostText : hostAndPort
    }
}

extension RequestURL: CustomStringConvertible {
    /// The URL without credentials.
    package var description: String { "\(scheme)://\(authority)\(target)" }
}
