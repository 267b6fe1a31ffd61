import JobModel

/// What surrounds a file in a body of the type multipart/form-data (RFC 7578).
struct MultipartFrame: Sendable {
    let contentType: String
    let before: [UInt8]
    let after: [UInt8]

    init(_ form: UploadSpec.Form, filename: String) {
        // No file contains it by accident.
        let boundary =
            "deferd-\(String(UInt64.random(in: .min ... .max), radix: 16))\(String(UInt64.random(in: .min ... .max), radix: 16))"
        func head(_ name: String, _ rest: String = "") -> String {
            "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(Self.escaped(name))\"\(rest)\r\n\r\n"
        }
        let fields = form.fields.map { head($0.name) + $0.value + "\r\n" }.joined()
        let file = "; filename=\"\(Self.escaped(filename))\"\r\nContent-Type: application/octet-stream"
        before = Array((fields + head(form.field, file)).utf8)
        after = Array("\r\n--\(boundary)--\r\n".utf8)
        contentType = "multipart/form-data; boundary=\(boundary)"
    }

    private static let escapes: [Unicode.Scalar: String] = ["\"": "%22", "\r": "%0D", "\n": "%0A"]

    /// A name as browsers write it.
    private static func escaped(_ name: String) -> String {
        name.unicodeScalars.map { escapes[$0] ?? String($0) }.joined()
    }
}
