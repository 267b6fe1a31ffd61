/// The content that a ``TestOrigin`` serves under one path.
package struct OriginResource: Sendable {
    package var bytes: [UInt8]
    package var contentType: String?
    /// As it is sent, quotes and `W/` included.
    package var etag: String?
    /// As it is sent.
    package var lastModified: String?
    /// Sent in place of 200.
    package var status = 200
    /// Further header fields.
    package var headers: [(name: String, value: String)] = []
    /// Whether the body never ends.
    package var stalls = false

    package init(_ bytes: [UInt8], type: String? = "application/octet-stream", etag: String? = nil) {
        self.bytes = bytes
        contentType = type
        self.etag = etag
    }

    package init(text: String, type: String = "text/plain; charset=utf-8", etag: String? = nil) {
        self.init(Array(text.utf8), type: type, etag: etag)
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

    /// The answer of a correct server (RFC 9110).
    package func answer(to request: OriginLog.Entry) -> [OriginStep] {
        var (status, fields, body) = (status, headers, bytes[...])
        let metadata = [("Content-Type", contentType), ("ETag", etag), ("Last-Modified", lastModified)]
        for case (let name, let value?) in metadata { fields.append((name, value)) }
        if isUnchanged(by: request) { return [.head("304 Not Modified", fields)] }
        if status == 200, request.method == "GET" {
            fields.append(("Accept-Ranges", "bytes"))
            if let (start, last) = range(of: request) {
                body = start < bytes.count ? bytes[start...min(last, bytes.count - 1)] : []
                status = body.isEmpty ? 416 : 206
                let range = body.isEmpty ? "*" : "\(start)-\(body.endIndex - 1)"
                fields.append(("Content-Range", "bytes \(range)/\(bytes.count)"))
            }
        }
        let head = OriginStep.head(
            "\(status) \(status < 300 ? "OK" : "Other")", fields + [("Content-Length", "\(body.count)")])
        if request.method == "HEAD" { return [head] }
        return stalls ? [head, .send(Array(body.prefix(1))), .hold] : [head, .send(Array(body))]
    }

    private func isUnchanged(by request: OriginLog.Entry) -> Bool {
        if let tag = request.headers["if-none-match"] { return tag == etag }
        if let date = request.headers["if-modified-since"] { return date == lastModified }
        return false
    }

    /// The wanted range, if the request wants one and its `If-Range` holds.
    private func range(of request: OriginLog.Entry) -> (start: Int, last: Int)? {
        guard let condition = request.headers["if-range"] else { return request.range }
        let holds = !condition.hasPrefix("W/") && (condition == etag || condition == lastModified)
        return holds ? request.range : nil
    }
}
