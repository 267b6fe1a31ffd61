/// Hides credentials in what clients and logs are shown.
package enum Masking {
    /// What stands for a hidden value.
    package static let mask = "***"

    private static let secretFields: Set<String> = ["authorization", "proxy-authorization", "cookie"]

    /// A spec, source or link with the values of credential headers and the user:password of URLs hidden.
    package static func masked(_ json: JSON) -> JSON { masked(json, inHeaders: false) }

    private static func masked(_ json: JSON, inHeaders: Bool) -> JSON {
        switch json {
        case .string(let text): return .string(masked(url: text))
        case .array(let elements): return .array(elements.map { masked($0, inHeaders: false) })
        case .object(let object):
            return .object(
                object.mapValues { member in
                    if inHeaders, secretFields.contains(member.name.lowercased()) { return .string(mask) }
                    return masked(member.value, inHeaders: member.name == "headers")
                })
        default: return json
        }
    }

    /// `text` with the user information of every URL in it hidden.
    ///
    /// It works on bytes, as Swift joins an accent to the sign before it, and looks at each byte a fixed number of times.
    package static func masked(url text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: "@")) else { return text }
        let bytes = Array(text.utf8)
        var masked: [UInt8] = []
        var copied = 0
        var index = 0
        while index + 2 < bytes.count {
            guard bytes[index] == UInt8(ascii: ":"), bytes[index...].starts(with: "://".utf8) else {
                index += 1
                continue
            }
            let start = index + 3
            let (end, at) = authority(in: bytes, from: start)
            if let at {
                masked += bytes[copied..<start]
                masked += mask.utf8
                copied = at
            }
            // Its last byte can be the colon of another "://".
            index = max(start, end - 1)
        }
        guard copied > 0 else { return text }
        return String(decoding: masked + bytes[copied...], as: UTF8.self)
    }

    /// A text that was to be a URL and is none, with all of it hidden that may be user information or a query.
    package static func masked(noURL text: String) -> String {
        var bytes = Array(text.utf8)
        if let query = bytes.firstIndex(of: UInt8(ascii: "?")), query + 1 < bytes.count {
            bytes.replaceSubrange((query + 1)..., with: mask.utf8)
        }
        let slashes = bytes.indices.first { bytes[$0...].starts(with: "//".utf8) }
        let start = slashes.map { $0 + 2 } ?? 0
        let end = bytes[start...].firstIndex { "/?#".utf8.contains($0) } ?? bytes.endIndex
        if let at = bytes[start..<end].lastIndex(of: UInt8(ascii: "@")) {
            bytes.replaceSubrange(start..<at, with: mask.utf8)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Where the authority that begins at `start` ends, and its last `@`. Expressions in it are passed over.
    private static func authority(in bytes: [UInt8], from start: Int) -> (end: Int, at: Int?) {
        var at: Int?
        var index = start
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "\""), UInt8(ascii: " "),
                UInt8(ascii: "\n"):
                return (index, at)
            case UInt8(ascii: "@"): at = index
            case UInt8(ascii: "{"):
                if let end = expressionEnd(in: bytes, from: index) {
                    index = end
                    continue
                }
            default: break
            }
            index += 1
        }
        return (index, at)
    }

    /// The end of the expression that begins at `start`; nil where none does. None holds a brace.
    private static func expressionEnd(in bytes: [UInt8], from start: Int) -> Int? {
        guard bytes[start...].starts(with: "{{".utf8),
            let close = bytes[(start + 2)...].firstIndex(where: { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "}") }),
            bytes[close...].starts(with: "}}".utf8)
        else { return nil }
        return close + 2
    }
}
