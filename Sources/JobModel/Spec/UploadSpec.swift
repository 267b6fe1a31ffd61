/// The transfer of an `upload` source.
package struct UploadSpec: Sendable, Equatable {
    package enum Method: String, Sendable, CaseIterable {
        case put = "PUT"
        case post = "POST"
        case patch = "PATCH"
    }

    /// A form whose file is the uploaded one.
    package struct Form: Sendable, Equatable {
        /// The name of the file's field.
        package let field: String
        /// Nil for the last part of the path.
        package let filename: String?
        /// The fields before the file.
        package let fields: [HeaderField]

        init?(_ reader: MemberReader, _ name: String) throws(SpecError) {
            guard let members = try reader.members(of: name) else { return nil }
            try members.allow(["field", "filename", "fields"])
            field = try members.requiredString("field")
            filename = try members.string("filename")
            fields = try members.fields("fields") ?? []
        }
    }

    package var url: String
    package var path: String
    package var method: Method
    package var headers: [HeaderField]
    package var checksum: Checksum?
    /// How the file is sent as part of multipart/form-data; nil to send it alone.
    package var form: Form?
    /// Seconds without a byte after which the transfer fails; nil for those of the configuration.
    package var idleTimeout: Double?

    static let members = ["type", "url", "path", "method", "headers", "checksum", "multipart", "idleTimeout"]

    init(_ reader: MemberReader) throws(SpecError) {
        url = try reader.requiredString("url")
        path = try reader.path("path")
        form = try Form(reader, "multipart")
        method = try reader.choice("method") ?? (form == nil ? .put : .post)
        headers = try HeaderField.read(reader)
        if form != nil, let field = headers.first(where: { $0.name.lowercased() == "content-type" }) {
            throw SpecError(
                reader.pointer(to: "headers").appending(field.name),
                "A form has a Content-Type of its own; leave \"\(field.name)\" out.")
        }
        checksum = try reader.checksum("checksum")
        idleTimeout = try JobSpec.duration(reader, "idleTimeout")
    }
}

extension MemberReader {
    func path(_ name: String) throws(SpecError) -> String {
        try requiredString(name) { $0.utf8.contains(0) ? "A path cannot contain NUL characters." : nil }
    }
}
