/// One field of an HTTP header, or of a form.
package struct HeaderField: Sendable, Equatable {
    package let name: String
    package let value: String

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }

    /// The fields that the transfer itself sets and clients may not.
    private static let reserved: Set<String> = [
        "connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    package static func isReserved(_ name: String) -> Bool { reserved.contains(name.lowercased()) }

    /// The maximum size of all fields of a request, in bytes.
    static let limit = 64 << 10

    /// Reads the member `headers`, an object of strings.
    static func read(_ reader: MemberReader) throws(SpecError) -> [HeaderField] {
        let fields = try reader.fields("headers", nameFlaw: flaw(ofName:), flaw: flaw(ofValue:)) ?? []
        let size = fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
        guard size <= limit else { throw reader.fault("headers", "The header fields are larger than \(limit) bytes.") }
        return fields
    }

    private static func flaw(ofName name: String) -> String? {
        if !isToken(name) { return "\"\(name.echoed)\" cannot be the name of a header field." }
        return isReserved(name) ? "The header field \"\(name.echoed)\" is set by the daemon; leave it out." : nil
    }

    package static func flaw(ofValue text: String) -> String? {
        text.utf8.contains { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }
            ? "A header field's value must not hold control characters." : nil
    }

    /// Returns whether `text` is an RFC 9110 token.
    package static func isToken(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
                default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
                }
            }
    }
}
