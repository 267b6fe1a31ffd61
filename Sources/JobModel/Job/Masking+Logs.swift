extension Masking {
    /// Returns `text` for a log, with the user information and query of every URL masked.
    /// Many services expect keys and tokens in queries.
    package static func masked(log text: String) -> String {
        let text = masked(url: text)
        guard text.utf8.contains(UInt8(ascii: "?")) else { return text }
        let bytes = Array(text.utf8)
        var masked: [UInt8] = []
        var copied = 0
        var offset = 0
        while offset + 2 < bytes.count {
            guard bytes[offset] == UInt8(ascii: ":"), bytes[offset...].starts(with: "://".utf8) else {
                offset += 1
                continue
            }
            // A URL ends where the surrounding text continues.
            let end = bytes[offset...].firstIndex { $0 <= 0x20 || $0 == UInt8(ascii: "\"") } ?? bytes.endIndex
            if let mark = bytes[offset..<end].firstIndex(of: UInt8(ascii: "?")), mark + 1 < end {
                masked += bytes[copied...mark]
                masked += mask.utf8
                copied = bytes[mark..<end].firstIndex(of: UInt8(ascii: "#")) ?? end
            }
            offset = max(end, offset + 1)
        }
        guard copied > 0 else { return text }
        return String(decoding: masked + bytes[copied...], as: UTF8.self)
    }
}
