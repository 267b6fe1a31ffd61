/// The request of a `url` or `json` source.
package struct HTTPRequestSpec: Sendable, Equatable {
    /// The statuses that count as success.
    package enum Accept: String, Sendable, CaseIterable {
        /// 2xx, and 304 to a conditional request.
        case success
        case any
    }

    package var url: String
    package var method: String
    package var headers: [HeaderField]
    package var body: [UInt8]?
    package var ifNoneMatch: String?
    package var ifModifiedSince: Timestamp?
    package var accept: Accept
    /// Seconds without a byte after which the transfer fails; nil for those of the configuration.
    package var idleTimeout: Double?

    static let members = [
        "type", "url", "method", "headers", "body", "bodyBase64", "json", "ifNoneMatch", "ifModifiedSince", "accept",
        "idleTimeout",
    ]

    init(_ reader: MemberReader) throws(SpecError) {
        url = try reader.requiredString("url")
        method =
            try reader.string("method", flaw: { HeaderField.isToken($0) ? nil : "A method is a word, such as GET." })
            ?? Self.method(without: reader.object)
        headers = try HeaderField.read(reader)
        let text = try reader.string("body", atMost: .max)
        let bytes = try reader.base64("bodyBase64")
        let isEncoded = reader.value("bodyBase64") != nil
        guard text == nil || !isEncoded else {
            throw reader.fault("bodyBase64", "Give either \"body\" or \"bodyBase64\", not both.")
        }
        // Null is a value here, too.
        let json = reader.object["json"]
        guard json == nil || text == nil && !isEncoded else {
            throw reader.fault("json", "Give either \"json\" or a body, not both.")
        }
        body = text.map { Array($0.utf8) } ?? bytes ?? json?.utf8
        if json != nil, !headers.contains(where: { $0.name.lowercased() == "content-type" }) {
            headers.append(HeaderField(name: "Content-Type", value: "application/json"))
        }
        ifNoneMatch = try reader.string("ifNoneMatch", flaw: HeaderField.flaw(ofValue:))
        ifModifiedSince = try reader.time("ifModifiedSince")
        accept = try reader.choice("accept") ?? .success
        idleTimeout = try JobSpec.duration(reader, "idleTimeout")
    }

    /// The method of a source that names none.
    package static func method(without source: JSONObject) -> String { source["json"] == nil ? "GET" : "POST" }
}
