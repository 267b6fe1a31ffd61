import CSystemd
import Glibc
import Logging

/// One entry of the journal: fields in the order in which they are sent.
struct JournalEntry {
    private(set) var fields: [(name: String, value: String)]

    init(_ event: LogEvent, id: String?, metadata: [(key: String, value: String)]) {
        fields = [
            ("MESSAGE", event.message.description), ("PRIORITY", Self.priority(of: event.level)),
            ("SYSLOG_IDENTIFIER", "deferd"), ("CODE_FILE", event.file), ("CODE_LINE", "\(event.line)"),
            ("CODE_FUNC", event.function),
        ]
        if let id { fields.append(("MESSAGE_ID", id)) }
        fields += metadata.map { (Self.name(forKey: $0.key), $0.value) }
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
        "DEFERD_" + key.uppercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" }
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
}
