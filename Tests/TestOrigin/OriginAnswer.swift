import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// The answer of a correct server to one request for one resource (RFC 9110).
struct OriginAnswer {
    private let resource: OriginResource
    private let request: OriginLog.Entry

    init(_ resource: OriginResource, to request: OriginLog.Entry) {
        self.resource = resource
        self.request = request
    }

    func response() throws -> Response {
        var fields = resource.headers
        if let type = resource.contentType { fields.append(("Content-Type", type)) }
        if let etag = resource.etag { fields.append(("ETag", etag)) }
        if let date = resource.lastModified { fields.append(("Last-Modified", date)) }
        if isUnchanged { return answer(304, fields, nil) }
        let bytes = try bytes()
        guard resource.acceptsRanges, resource.status == 200, request.method == "GET" else {
            return answer(resource.status, fields, bytes)
        }
        fields.append(("Accept-Ranges", "bytes"))
        guard let range = range else { return answer(resource.status, fields, bytes) }
        guard range.start < bytes.count else {
            return answer(416, fields + [("Content-Range", "bytes */\(bytes.count)")], [])
        }
        let last = min(range.last, bytes.count - 1)
        fields.append(("Content-Range", "bytes \(range.start)-\(last)/\(bytes.count)"))
        return answer(206, fields, Array(bytes[range.start...last]))
    }

    private func bytes() throws -> [UInt8] {
        switch resource.content {
        case .bytes(let bytes): bytes
        case .file(let path): Array(try Data(contentsOf: URL(fileURLWithPath: path)))
        }
    }

    private var isUnchanged: Bool {
        if let tag = request.headers["if-none-match"] { return tag == resource.etag }
        if let date = request.headers["if-modified-since"] { return date == resource.lastModified }
        return false
    }

    /// The wanted range, if the request wants one and its `If-Range` holds.
    private var range: (start: Int, last: Int)? {
        guard let range = request.range else { return nil }
        if let condition = request.headers["if-range"] {
            guard condition == resource.etag || condition == resource.lastModified, !condition.hasPrefix("W/") else {
                return nil
            }
        }
        return range
    }

    /// `bytes` are nil for an answer that must not have a body.
    private func answer(_ status: Int, _ fields: [(name: String, value: String)], _ bytes: [UInt8]?) -> Response {
        var headers = HTTPFields()
        for field in fields {
            if let name = HTTPField.Name(field.name) { headers.append(HTTPField(name: name, value: field.value)) }
        }
        let status = HTTPResponse.Status(code: status)
        guard let bytes else { return Response(status: status, headers: headers) }
        let drip = resource.drip
        guard drip != nil || resource.hidesLength else {
            return Response(
                status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
        }
        let body = ResponseBody(contentLength: resource.hidesLength ? nil : bytes.count) { writer in
            var rest = bytes[...]
            while !rest.isEmpty {
                let piece = rest.prefix(drip?.bytes ?? 64 << 10)
                rest = rest.dropFirst(piece.count)
                try await writer.write(ByteBuffer(bytes: piece))
                if let pause = drip?.pause { try await Task.sleep(for: pause) }
            }
            try await writer.finish(nil)
        }
        return Response(status: status, headers: headers, body: body)
    }
}
