/// The transfer of an `upload` source.
package struct UploadSpec: Sendable, Equatable {
    package enum Method: String, Sendable, CaseIterable {
        case put = "PUT"
        case post = "POST"
        case patch = "PATCH"
    }

    package var url: String
    package var path: String
    package var method: Method
    package var headers: [HeaderField]
    /// The required SHA-256 of the file, as 64 lower-case hexadecimal digits.
    package var sha256: String?

    static let members = ["type", "url", "path", "method", "headers", "checksum"]

    init(_ reader: MemberReader) throws(SpecError) {
        url = try reader.requiredString("url")
        path = try reader.path("path")
        method = try reader.choice("method") ?? .put
        headers = try HeaderField.read(reader)
        sha256 = try reader.sha256("checksum")
    }
}

extension MemberReader {
    func path(_ name: String) throws(SpecError) -> String {
        try requiredString(name) { $0.utf8.contains(0) ? "A path cannot contain NUL characters." : nil }
    }

    /// Reads a SHA-256 written as `sha256:` and 64 digits; returns the digits in lower case.
    func sha256(_ name: String) throws(SpecError) -> String? {
        func digits(_ text: String) -> String? {
            let parts = text.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, parts[0].lowercased() == "sha256", parts[1].utf8.count == 64,
                parts[1].allSatisfy({ $0.isASCII && $0.isHexDigit })
            else { return nil }
            return parts[1].lowercased()
        }
        return try string(name) { text in
            digits(text) == nil ? "\"\(name)\" must be \"sha256:\" and 64 hexadecimal digits." : nil
        }.flatMap(digits)
    }
}
