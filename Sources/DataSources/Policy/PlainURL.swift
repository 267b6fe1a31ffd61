/// A URL as nearly all are written, read in one pass over its bytes: `http` or `https` in lower case, a name or a dotted
/// address in lower case, and a target without anything to encode.
///
/// It takes no form that ``RequestURL`` would read otherwise; what it does not take is left to that.
struct PlainURL {
    let scheme: String
    let host: RequestURL.Host
    let port: Int
    let target: String

    init?(_ bytes: UnsafeBufferPointer<UInt8>) {
        let start: Int
        if Self.begins(bytes, with: "http://") {
            (scheme, start) = ("http", 7)
        } else if Self.begins(bytes, with: "https://") {
            (scheme, start) = ("https", 8)
        } else {
            return nil
        }
        var end = start
        while end < bytes.count, Self.isOfName(bytes[end]) { end += 1 }
        guard let host = Self.host(UnsafeBufferPointer(rebasing: bytes[start..<end])) else { return nil }
        var port = scheme == "https" ? 443 : 80
        if end < bytes.count, bytes[end] == UInt8(ascii: ":") {
            let digits = end + 1
            end = digits
            port = 0
            while end < bytes.count, Self.isDigit(bytes[end]), port <= 65_535 {
                port = port * 10 + Int(bytes[end] - 0x30)
                end += 1
            }
            guard end > digits, (1...65_535).contains(port) else { return nil }
        }
        guard end == bytes.count || bytes[end] == UInt8(ascii: "/"),
            bytes[end...].allSatisfy(Self.isPlainInTarget)
        else { return nil }
        self.host = host
        self.port = port
        target = end == bytes.count ? "/" : String(decoding: bytes[end...], as: UTF8.self)
    }

    private static func begins(_ bytes: UnsafeBufferPointer<UInt8>, with prefix: StaticString) -> Bool {
        bytes.count >= prefix.utf8CodeUnitCount
            && bytes.starts(with: UnsafeBufferPointer(start: prefix.utf8Start, count: prefix.utf8CodeUnitCount))
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    private static func isOfName(_ byte: UInt8) -> Bool {
        (0x61...0x7A).contains(byte) || isDigit(byte) || byte == 0x2D || byte == 0x2E || byte == 0x5F
    }

    /// Whether a byte stands in a request line as it is; a percent sign is looked at more closely elsewhere.
    private static func isPlainInTarget(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x61...0x7A, 0x41...0x5A, 0x2D...0x3B: true  // letters, and "-./0123456789:;"
        case UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "?"), UInt8(ascii: "="), UInt8(ascii: "&"),
            UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: "@"), UInt8(ascii: "!"), UInt8(ascii: "*"):
            true
        default: false
        }
    }

    private static func host(_ bytes: UnsafeBufferPointer<UInt8>) -> RequestURL.Host? {
        var label = 0
        guard let last = bytes.last, last != UInt8(ascii: "."), bytes.count <= 253 else { return nil }
        for (index, byte) in bytes.enumerated() where byte == UInt8(ascii: ".") {
            guard (1...63).contains(index - label) else { return nil }
            label = index + 1
        }
        guard (1...63).contains(bytes.count - label) else { return nil }
        // What can be meant as an address begins with a digit in its last label.
        if isDigit(bytes[label]) { return address(bytes).map(RequestURL.Host.address) }
        return .name(String(decoding: bytes, as: UTF8.self))
    }

    /// Four decimal numbers without leading zeros.
    private static func address(_ bytes: UnsafeBufferPointer<UInt8>) -> IPAddress? {
        var numbers: [UInt8] = []
        numbers.reserveCapacity(4)
        var number: Int?
        for byte in bytes {
            if byte == UInt8(ascii: ".") {
                guard let ended = number, numbers.count < 3 else { return nil }
                numbers.append(UInt8(ended))
                number = nil
            } else {
                guard isDigit(byte), number != 0 else { return nil }
                let next = (number ?? 0) * 10 + Int(byte - 0x30)
                guard next <= 255 else { return nil }
                number = next
            }
        }
        guard let number, numbers.count == 3 else { return nil }
        return IPAddress(bytes: numbers + [UInt8(number)])
    }
}
