import JobModel

/// The name that a server gives to a file, as a name that is safe in any directory.
enum ServerName {
    /// The name in `Content-Disposition` (RFC 6266), else the last part of the final URL, else `download`.
    static func of(_ response: IncomingResponse) -> String {
        let path = response.url.target.prefix { $0 != "?" }
        let last = String(
            path[(path.utf8.lastIndex(of: UInt8(ascii: "/")).map(path.utf8.index(after:)) ?? path.startIndex)...])
        return response.field("Content-Disposition").flatMap(name(inDisposition:))
            ?? cleaned(PercentEncoding.decoded(last) ?? last) ?? "download"
    }

    /// The name in the value of `Content-Disposition`: `filename*` comes before `filename`.
    static func name(inDisposition value: String) -> String? {
        let parameters = parameters(of: value)
        let extended = parameters.first { $0.name == "filename*" }.flatMap { decoded($0.value) }
        return extended.flatMap(cleaned) ?? parameters.first { $0.name == "filename" }.flatMap { cleaned($0.value) }
    }

    /// The parameters behind the first semicolon, with names in lower case, and values without quotes and escapes.
    private static func parameters(of text: String) -> [(name: String, value: String)] {
        var parts: [String.UnicodeScalarView] = [.init()]
        var (isQuoted, isEscaped) = (false, false)
        for scalar in text.unicodeScalars {
            if isEscaped {
                isEscaped = false
            } else if isQuoted, scalar == "\\" {
                isEscaped = true
                continue
            } else if scalar == "\"" {
                isQuoted.toggle()
                continue
            } else if scalar == ";", !isQuoted {
                parts.append(.init())
                continue
            }
            parts[parts.count - 1].append(scalar)
        }
        return parts.dropFirst().compactMap { part in
            guard let equals = part.firstIndex(of: "=") else { return nil }
            return (
                String(part[..<equals]).trimmed.lowercased(), String(part[part.index(after: equals)...]).trimmed
            )
        }
    }

    /// Decodes `UTF-8''na%C3%AFve.txt` (RFC 8187).
    private static func decoded(_ value: String) -> String? {
        let parts = value.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        let bytes = PercentEncoding.bytes(parts[2])
        switch parts[0].lowercased() {
        case "utf-8": return bytes.flatMap { String(validating: $0, as: UTF8.self) }
        // Each byte is the character of the same number.
        case "iso-8859-1": return bytes.map { String(String.UnicodeScalarView($0.map { Unicode.Scalar($0) })) }
        default: return nil
        }
    }

    /// The bytes between directories' separators, without what could hide the name, mislead a reader, or be taken for an
    /// unfinished download; nil if nothing is left.
    static func cleaned(_ text: String) -> String? {
        guard text.utf8.count <= longestText else { return nil }
        let last = text.unicodeScalars.split { $0 == "/" || $0 == "\\" }.last ?? .init()
        let visible = last.filter { scalar in
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: false
            default: !scalar.properties.isBidiControl
            }
        }
        let start = visible.drop { $0 == "." || $0.properties.isWhitespace }
        var name = cut(String(String.UnicodeScalarView(start))).trimmed
        while name.hasSuffix(DownloadPath.partSuffix) {
            name = String(name.dropLast(DownloadPath.partSuffix.count)).trimmed
        }
        return name.isEmpty ? nil : name
    }

    /// The most bytes of a name, so that the name of its unfinished file is valid too.
    private static let longest = 250
    private static let longestExtension = 32
    /// The most bytes of text that counts as a name.
    private static let longestText = 4096

    private static func cut(_ name: String) -> String {
        guard name.utf8.count > longest else { return name }
        var ending = name.lastIndex(of: ".").map { name[$0...] } ?? ""
        if ending.utf8.count > longestExtension { ending = "" }
        let stem = name.dropLast(ending.count).utf8
        // The last character may be cut.
        let kept = (0...3).lazy.compactMap { index in
            String(validating: stem.prefix(longest - ending.utf8.count - index), as: UTF8.self)
        }.first
        return (kept ?? "") + ending
    }
}
