import Foundation
import JobModel

/// An absolute `scheme://host` URL, taken apart strictly and put together again in one spelling.
///
/// What is checked is what is connected to: the HTTP client only ever sees ``description``. Foundation's `URL` leaves a host
/// as it is written, such as an address in octal digits, which others read in their own way. In the rows `url` of `make
/// bench-libraries` it takes three times as long for a plain URL (``PlainURL``), and a quarter of the time for one that is
/// not.
package struct RequestURL: Sendable, Hashable {
    /// What a URL names as its server.
    package enum Host: Sendable, Hashable {
        /// Lower case, without a trailing dot.
        case name(String)
        case address(IPAddress)
    }

    /// What may be sent a credential: scheme, host and port.
    package struct Origin: Sendable, Hashable {
        let scheme: String
        let host: Host
        let port: Int
    }

    package let scheme: String
    package let host: Host
    package let port: Int
    /// `user:password`, percent-decoded; nil without user information.
    package let credentials: String?
    /// Path and query, percent-encoded; begins with a slash.
    package let target: String

    package var origin: Origin { Origin(scheme: scheme, host: host, port: port) }

    /// The URL that `text` writes, or nil where it is none.
    package init?(_ text: String) {
        var text = text
        if let plain = text.withUTF8({ PlainURL($0) }) {
            self.init(plain)
        } else {
            self.init(unusual: text)
        }
    }

    private init(_ plain: PlainURL) {
        scheme = plain.scheme
        host = plain.host
        port = plain.port
        credentials = nil
        target = plain.target
    }

    /// The same for every form that a URL may have.
    ///
    /// It goes by bytes: to Swift a slash before a combining accent is another character, and to a server it is a slash.
    init?(unusual text: String) {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), let first = text.utf8.first,
            Self.isLetter(first), text.utf8[colon...].starts(with: "://".utf8),
            text[..<colon].utf8.allSatisfy({ Self.isLetter($0) || Self.isDigit($0) || "+-.".utf8.contains($0) }),
            !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F })
        else { return nil }
        let rest = text[text.utf8.index(colon, offsetBy: 3)...]
        let end = rest.utf8.firstIndex { "/?#".utf8.contains($0) } ?? rest.endIndex
        self.init(scheme: text[..<colon].lowercased(), authority: rest[..<end], target: Self.target(rest[end...]))
    }

    private init?(scheme: String, authority: Substring, target: String) {
        // Some programs read a backslash as a slash, so they would see another host. And what shows a URL in a text takes it to
        // end at a space or a quotation mark.
        guard !authority.utf8.contains(where: { #"\ ""#.utf8.contains($0) }) else { return nil }
        var authority = authority
        var credentials: String?
        if let at = authority.utf8.lastIndex(of: UInt8(ascii: "@")) {
            guard let decoded = Self.decoded(authority[..<at]) else { return nil }
            credentials = decoded.isEmpty || decoded.utf8.contains(UInt8(ascii: ":")) ? decoded : decoded + ":"
            authority = authority[authority.utf8.index(after: at)...]
        }
        var portText = Substring()
        if let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]") {
            portText = authority[authority.index(after: colon)...]
            authority = authority[..<colon]
        }
        guard let host = Self.host(authority), let port = Self.port(portText, scheme: scheme) else { return nil }
        self.scheme = scheme
        self.host = host
        self.port = port
        self.credentials = credentials.flatMap { $0.isEmpty ? nil : $0 }
        self.target = target
    }

    private static func port(_ text: Substring, scheme: String) -> Int? {
        if text.isEmpty { return scheme == "https" ? 443 : 80 }
        guard text.utf8.allSatisfy(isDigit), let port = Int(text), (1...65_535).contains(port) else { return nil }
        return port
    }

    private static func host(_ text: Substring) -> Host? {
        if text.hasPrefix("[") {
            guard text.hasSuffix("]") else { return nil }
            // A zone ("%25eth0") only names the interface to be used.
            let address = text.dropFirst().dropLast().prefix { $0 != "%" }
            guard address.contains(":") else { return nil }
            return IPAddress(address).map(Host.address)
        }
        guard text.utf8.allSatisfy({ $0 < 0x80 }) else {
            return HostEncoding.ascii(text).flatMap { $0.utf8.allSatisfy { $0 < 0x80 } ? host(Substring($0)) : nil }
        }
        var name = text.lowercased()
        if name.hasSuffix(".") { name.removeLast() }
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        guard name.utf8.count <= 253, let last = labels.last,
            labels.allSatisfy({ label in
                (1...63).contains(label.utf8.count)
                    && label.utf8.allSatisfy { isLetter($0) || isDigit($0) || $0 == 0x2D || $0 == 0x5F }
            })
        else { return nil }
        if IPAddress.looksNumeric(last) { return IPAddress(name).map(Host.address) }
        return .name(name)
    }

    /// Path and query with everything encoded that may not stand in a request line; a fragment is dropped.
    private static func target(_ text: Substring) -> String {
        // By bytes: before a combining character it is another one to Swift.
        let source = Array(text.utf8.prefix { $0 != UInt8(ascii: "#") })
        var bytes: [UInt8] = source.first == UInt8(ascii: "/") ? [] : [UInt8(ascii: "/")]
        for (index, byte) in source.enumerated() {
            let isStrayPercent =
                byte == UInt8(ascii: "%")
                && !(index + 2 < source.count && isHexadecimal(source[index + 1]) && isHexadecimal(source[index + 2]))
            if byte <= 0x20 || byte >= 0x7F || isStrayPercent || "\"<>\\^`{|}".utf8.contains(byte) {
                PercentEncoding.append(byte, to: &bytes)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func decoded(_ text: Substring) -> String? {
        let source = Array(text.utf8)
        var bytes: [UInt8] = []
        var index = 0
        while index < source.count {
            if source[index] == UInt8(ascii: "%") {
                guard index + 2 < source.count,
                    let byte = UInt8(String(decoding: source[index + 1...index + 2], as: UTF8.self), radix: 16)
                else { return nil }
                bytes.append(byte)
                index += 3
            } else {
                bytes.append(source[index])
                index += 1
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }
    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
    private static func isHexadecimal(_ byte: UInt8) -> Bool { isDigit(byte) || (0x61...0x66).contains(byte | 0x20) }
}

extension RequestURL {
    /// The scheme at the beginning of a reference, in lower case; nil for a relative one.
    static func scheme(of reference: String) -> String? {
        let reference = reference.drop { $0 == " " || $0 == "\t" }
        guard let colon = reference.firstIndex(of: ":"), let first = reference.utf8.first, isLetter(first),
            reference[..<colon].utf8.allSatisfy({ isLetter($0) || isDigit($0) || "+-.".utf8.contains($0) })
        else { return nil }
        return reference[..<colon].lowercased()
    }

    /// The URL that a `Location` header stands for in a response from this one, or nil where it is not valid.
    package func resolving(_ reference: String) -> RequestURL? {
        let reference = reference.drop { $0 == " " || $0 == "\t" }
        let scheme = reference.prefix { $0 != ":" && $0 != "/" && $0 != "?" && $0 != "#" }
        if reference[scheme.endIndex...].hasPrefix(":") {
            return RequestURL(String(reference))?.withoutDotSegments
        }
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
        return RequestURL(self, target: "/" + kept.joined(separator: "/") + target[query...])
    }

    private init(_ url: RequestURL, target: String) {
        scheme = url.scheme
        host = url.host
        port = url.port
        credentials = url.credentials
        self.target = target
    }

    /// The host as it stands in a URL, an IPv6 address in brackets.
    package var hostText: String { Self.text(of: host) }

    static func text(of host: Host) -> String {
        switch host {
        case .name(let name): name
        case .address(let address): address.isVersion4 ? address.description : "[\(address)]"
        }
    }

    /// Host and port, the port also where it is the scheme's own.
    package var hostAndPort: String { "\(hostText):\(port)" }

    /// Host, and port where it is not the scheme's own.
    var authority: String {
        (scheme == "https" && port == 443) || (scheme == "http" && port == 80) ? hostText : hostAndPort
    }
}

extension RequestURL: CustomStringConvertible {
    /// The URL without its credentials.
    package var description: String { "\(scheme)://\(authority)\(target)" }
}

/// International host names in the form that name servers know (`xn--`).
enum HostEncoding {
    /// The ASCII form of `host`, or nil where it has none.
    static func ascii(_ host: Substring) -> String? {
        // A character that ends a host must not get in here through decoding: whoever looked for the host's end did not
        // see it.
        guard !host.contains(where: { "/?#@:[]%\\ ".contains($0) }) else { return nil }
        return URL(string: "http://\(host)/")?.host
    }
}
