// The compiler counts timespec as a member of the module that includes its header first.
import CSystemd
import Glibc
import Logging

/// A log message as a line: time in UTC, level, message, metadata.
enum StandardErrorLine {
    static func text(
        at time: Duration = Self.sinceEpoch(), level: Logger.Level, message: String,
        metadata: [(key: String, value: String)]
    ) -> String {
        let fields = metadata.map { "\(escaped($0.key))=\(quoted($0.value))" }
        return ([timestamp(time), level.rawValue, escaped(message)] + fields).joined(separator: " ") + "\n"
    }

    /// Writes the line in one system call, so that lines of several threads do not mix. If standard error is gone, it is lost.
    static func write(_ line: String) {
        var rest = Array(line.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    private static func sinceEpoch() -> Duration {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return .seconds(now.tv_sec) + .nanoseconds(now.tv_nsec)
    }

    /// RFC 3339 in UTC with milliseconds, by the C library: this module does not import `Timestamp`.
    private static func timestamp(_ time: Duration) -> String {
        let (whole, attoseconds) = time.components
        var seconds = time_t(whole)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        let text = String(unsafeUninitializedCapacity: 32) { buffer in
            buffer.withMemoryRebound(to: CChar.self) { text in
                strftime(text.baseAddress, text.count, "%Y-%m-%dT%H:%M:%S.", &parts)
            }
        }
        // Milliseconds with leading zeros: the last three digits of 1000 to 1999.
        return text + String(1000 + attoseconds / 1_000_000_000_000_000).dropFirst() + "Z"
    }

    /// The text with escaped control characters: a message never makes a second line or moves a terminal's cursor.
    private static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: \.breaksLine) else { return text }
        return text.unicodeScalars.map { $0.breaksLine ? $0.escaped(asASCII: true) : String($0) }.joined()
    }

    private static func quoted(_ value: String) -> String {
        let plain = !value.isEmpty && !value.contains { $0 == " " || $0 == "\"" || $0 == "=" }
        return plain ? escaped(value) : "\"" + escaped(value).replacing("\"", with: "\\\"") + "\""
    }
}
