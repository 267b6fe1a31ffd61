import JobModel
import NIOHTTP1

/// The body of a response, in memory or in a file.
enum ResponseBody: Sendable {
    case whole([UInt8])
    case spilled(size: Int)

    var size: Int {
        switch self {
        case .whole(let bytes): bytes.count
        case .spilled(let size): size
        }
    }
}

/// The complete response to a request for a document.
struct DocumentResponse: Sendable {
    let response: IncomingResponse
    let isNotModified: Bool
    let body: ResponseBody

    /// The result of the source `url`.
    var json: JSON {
        var result = JSONObject()
        result.append("status", JSON(response.status))
        result.append("headers", .object(response.fields))
        result.append("mediaType", mediaType.map(JSON.string) ?? .null)
        result.append("size", JSON(body.size))
        result.append("notModified", .bool(isNotModified))
        switch body {
        case .whole(let bytes):
            if let text = String(validating: bytes, as: UTF8.self) {
                result.append("body", .string(text))
            } else {
                result.append("body", .string(Base64.encode(bytes)))
                result.append("encoding", "base64")
            }
        case .spilled: result.append("spilled", true)
        }
        return .object(result)
    }

    /// The media type without parameters, in lower case.
    var mediaType: String? {
        guard let field = response.field("Content-Type") else { return nil }
        let type = field.utf8.prefix { $0 != UInt8(ascii: ";") }
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        let text = Substring(type.drop(while: isSpace)).lowercased()
        let end = text.utf8.lastIndex { !isSpace($0) }
        return end.map { String(Substring(text.utf8[...$0])) }
    }
}
