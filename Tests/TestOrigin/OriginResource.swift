/// The content that a ``TestOrigin`` serves under one path.
package struct OriginResource: Sendable {
    /// Bytes in memory, or a file that is read as it is when it is asked for.
    package enum Content: Sendable {
        case bytes([UInt8])
        case file(String)
    }

    package var content: Content
    package var contentType: String?
    /// As it is sent, quotes and `W/` included.
    package var etag: String?
    /// As it is sent.
    package var lastModified: String?
    package var acceptsRanges = true
    /// Sent in place of 200.
    package var status = 200
    /// Further header fields.
    package var headers: [(name: String, value: String)] = []
    /// Bytes at a time, with a pause after each, in place of all at once.
    package var drip: (bytes: Int, pause: Duration)?
    /// Whether the body goes out in chunks, without its length.
    package var hidesLength = false

    package init(_ bytes: [UInt8], type: String? = "application/octet-stream", etag: String? = nil) {
        content = .bytes(bytes)
        contentType = type
        self.etag = etag
    }

    package init(text: String, type: String = "text/plain; charset=utf-8", etag: String? = nil) {
        self.init(Array(text.utf8), type: type, etag: etag)
    }

    package init(file: String, etag: String? = nil) {
        content = .file(file)
        contentType = "application/octet-stream"
        self.etag = etag
    }

    /// A JSON document.
    package static func json(_ text: String) -> OriginResource {
        OriginResource(text: text, type: "application/json")
    }

    /// An answer that leads elsewhere.
    package static func redirect(_ status: Int, to location: String) -> OriginResource {
        var resource = OriginResource(text: "This way.")
        resource.status = status
        resource.headers = [("Location", location)]
        return resource
    }
}
