import CSystemd
import Glibc
import Logging

/// One entry of the journal: fields in the order in which they are sent.
struct JournalEntry: Equatable {
    /// The maximum number of metadata fields of one entry.
    static let metadataLimit = 64
    /// The longest value in UTF-8 bytes; the rest is cut off.
    static let valueLimit = 16 * 1024
    /// The longest name of a field; the journal drops an entry with a longer one.
    static let nameLimit = 64

    struct Field: Equatable {
        var name: String
        var value: String
    }

    private(set) var fields: [Field]

    init(event: LogEvent, metadata: [(key: String, value: String)], identifier: String) {
        fields = [
            Field(name: "MESSAGE", value: Self.cut(event.message.description)),
            Field(name: "PRIORITY", value: Self.priority(of: event.level)),
            Field(name: "SYSLOG_IDENTIFIER", value: identifier),
            Field(name: "CODE_FILE", value: event.file),
            Field(name: "CODE_LINE", value: "\(event.line)"),
            Field(name: "CODE_FUNC", value: event.function),
        ]
        if let id = metadata.first(where: { $0.key == MessageCatalog.key }).flatMap({ MessageCatalog.ids[$0.value] }) {
            fields.append(Field(name: "MESSAGE_ID", value: id))
        }
        fields += metadata.prefix(Self.metadataLimit).map {
            Field(name: Self.name(forKey: $0.key), value: Self.cut($0.value))
        }
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
        let letters = key.unicodeScalars.map { scalar -> Character in
            switch scalar {
            case "a"..."z": Character(Unicode.Scalar(UInt8(scalar.value) - 32))
            case "A"..."Z", "0"..."9": Character(scalar)
            default: "_"
            }
        }
        return String(("DEFERD_" + String(letters)).prefix(nameLimit))
    }

    /// The syslog priority for the journal: 2 (critical) to 7 (debug).
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
