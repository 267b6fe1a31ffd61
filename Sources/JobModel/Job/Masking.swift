/// Masks credentials in output for clients and logs.
package enum Masking {
    package static let mask = "***"

    private static let secretFields: Set<String> = ["authorization", "proxy-authorization", "cookie"]

    /// Masks credential headers, the variables of programs and the user information of URLs in a spec, source or link.
    package static func masked(_ json: JSON) -> JSON { masked(json, inHeaders: false) }

    private static func masked(_ json: JSON, inHeaders: Bool) -> JSON {
        switch json {
        case .string(let text): return .string(masked(url: text))
        case .array(let elements): return .array(elements.map { masked($0, inHeaders: false) })
        case .object(let object):
            return .object(
                object.mapValues { member in
                    if inHeaders, secretFields.contains(member.name.lowercased()) { return .string(mask) }
                    if object.hidesValues(of: member.name), let variables = member.value.object {
                        return .object(variables.mapValues { _ in .string(mask) })
                    }
                    return masked(member.value, inHeaders: member.name == "headers")
                })
        default: return json
        }
    }

    /// Masks the user information of every URL in `text`.
    package static func masked(url text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: "@")) else { return text }
        return masked(text) { bytes, start in
            let (end, at) = authority(in: bytes, from: start)
            // The last byte can be the colon of another "://".
            return (at.map { start..<$0 }, max(start, end - 1))
        }
    }

    /// Returns `text` for a log, with the user information and query of every URL masked.
    /// Many services expect keys and tokens in queries.
    package static func masked(log text: String) -> String {
        let text = masked(url: text)
        guard text.utf8.contains(UInt8(ascii: "?")) else { return text }
        return masked(text) { bytes, start in
            // A URL ends where the surrounding text continues.
            let end = bytes[start...].firstIndex { $0 <= 0x20 || $0 == UInt8(ascii: "\"") } ?? bytes.endIndex
            guard let mark = bytes[start..<end].firstIndex(of: UInt8(ascii: "?")), mark + 1 < end else {
                return (nil, end)
            }
            return (mark + 1..<(bytes[mark..<end].firstIndex(of: UInt8(ascii: "#")) ?? end), end)
        }
    }

    /// Masks the secret that `find` returns for the text after each "://", with the position to continue from.
    ///
    /// Works on bytes, as Swift joins accents to the preceding character, and reads each byte a fixed number of times.
    private static func masked(
        _ text: String, _ find: (_ bytes: [UInt8], _ start: Int) -> (secret: Range<Int>?, next: Int)
    ) -> String {
        let bytes = Array(text.utf8)
        var masked: [UInt8] = []
        var (copied, index) = (0, 0)
        while index + 2 < bytes.count {
            guard bytes[index] == UInt8(ascii: ":"), bytes[index...].starts(with: "://".utf8) else {
                index += 1
                continue
            }
            let (secret, next) = find(bytes, index + 3)
            if let secret {
                masked += bytes[copied..<secret.lowerBound]
                masked += mask.utf8
                copied = secret.upperBound
            }
            index = next
        }
        guard copied > 0 else { return text }
        return String(decoding: masked + bytes[copied...], as: UTF8.self)
    }

    /// Masks possible user information and queries in text that should be a URL but is not.
    package static func masked(noURL text: String) -> String {
        var bytes = Array(text.utf8)
        if let query = bytes.firstIndex(of: UInt8(ascii: "?")), query + 1 < bytes.count {
            bytes.replaceSubrange((query + 1)..., with: mask.utf8)
        }
        let slashes = bytes.indices.first { bytes[$0...].starts(with: "//".utf8) }
        let start = slashes.map { $0 + 2 } ?? 0
        // A password may hold a slash.
        if let at = bytes[start...].lastIndex(of: UInt8(ascii: "@")) {
            bytes.replaceSubrange(start..<at, with: mask.utf8)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the end of the authority at `start` and its last `@`; expressions in it are skipped.
    ///
    /// An authority such as `bob:s3/cret@host` has no port, so its first slash belongs to a password.
    private static func authority(in bytes: [UInt8], from start: Int) -> (end: Int, at: Int?) {
        var at: Int?
        var index = start
        var (colon, hasWordBehindColon) = (false, false)
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"):
                if at != nil || !hasWordBehindColon { return (index, at) }
            case UInt8(ascii: "\""), UInt8(ascii: " "), UInt8(ascii: "\n"): return (index, at)
            case UInt8(ascii: ":"): colon = true
            case UInt8(ascii: "@"): at = index
            case UInt8(ascii: "{"):
                if let end = expressionEnd(in: bytes, from: index) {
                    index = end
                    continue
                }
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "]"): break
            default: hasWordBehindColon = hasWordBehindColon || colon
            }
            index += 1
        }
        return (index, at)
    }

    /// Returns the end of the expression at `start`, or nil; expressions contain no braces.
    private static func expressionEnd(in bytes: [UInt8], from start: Int) -> Int? {
        guard bytes[start...].starts(with: "{{".utf8),
            let close = bytes[(start + 2)...].firstIndex(where: { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "}") }),
            bytes[close...].starts(with: "}}".utf8)
        else { return nil }
        return close + 2
    }
}

extension JSONObject {
    /// Whether this member is the environment of a `program` source.
    package func hidesValues(of member: String) -> Bool {
        member == "environment" && self["type"]?.string == SourceType.program.rawValue
    }
}
