import CSystemd
import Glibc
import Logging

/// One entry of the journal: fields in the order in which they are sent.
struct JournalEntry {
    /// The maximum number of metadata fields.
    static let metadataLimit = 64
    /// The longest value in UTF-8 bytes; the rest is cut off.
    static let valueLimit = 16 * 1024
    /// The longest name of a field; the journal drops an entry with a longer one.
    static let nameLimit = 64

    private(set) var fields: [(name: String, value: String)]

    init(_ event: LogEvent, metadata: [(key: String, value: String)]) {
        fields = [
            ("MESSAGE", Self.cut(event.message.description)), ("PRIORITY", Self.priority(of: event.level)),
            ("SYSLOG_IDENTIFIER", "deferd"), ("CODE_FILE", event.file), ("CODE_LINE", "\(event.line)"),
            ("CODE_FUNC", event.function),
        ]
        if let id = metadata.first(where: { $0.key == MessageCatalog.key }).flatMap({ MessageCatalog.ids[$0.value] }) {
            fields.append(("MESSAGE_ID", id))
        }
        fields += metadata.prefix(Self.metadataLimit).map { (Self.name(forKey: $0.key), Self.cut($0.value)) }
    }

    /// Sends the entry; the result is 0 or a negative error number.
    func send() -> Int32 {
        var bytes: [UInt8] = []
        var ends: [Int] = []
        for field in fields {
            bytes += "\(field.name)=\(field.value)".utf8
            ends.append(bytes.count)
        }
        return bytes.withUnsafeMutableBytes { buffer in
            var vectors: [iovec] = []
            var start = 0
            for end in ends {
                vectors.append(iovec(iov_base: buffer.baseAddress?.advanced(by: start), iov_len: end - start))
                start = end
            }
            return sd_journal_sendv(vectors, Int32(vectors.count))
        }
    }

    /// `DEFERD_` and the key, in the letters that the journal accepts.
    static func name(forKey key: String) -> String {
        let letters = key.unicodeScalars.map { scalar -> String in
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9": String(scalar).uppercased()
            default: "_"
            }
        }
        return String(("DEFERD_" + letters.joined()).prefix(nameLimit))
    }

    /// The syslog priority: 2 (critical) to 7 (debug).
    static func priority(of level: Logger.Level) -> String {
        switch level {
        case .trace, .debug: "7"
        case .info: "6"
        case .notice: "5"
        case .warning: "4"
        case .error: "3"
        case .critical: "2"
        }
    }

    private static func cut(_ value: String) -> String {
        guard value.utf8.count > valueLimit else { return value }
        // Decoding repairs a character cut in two.
        return String(decoding: value.utf8.prefix(valueLimit), as: UTF8.self) + "…"
    }
}
