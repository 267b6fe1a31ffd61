import Glibc
import JobModel
import Logging

/// A log message as a line: time in UTC, level, message, metadata.
package enum StandardErrorLine {
    static func text(
        at time: Timestamp = .now, level: Logger.Level, message: String, metadata: [(key: String, value: String)]
    ) -> String {
        let fields = metadata.map { "\(escaped($0.key))=\(quoted($0.value))" }
        return ([time.description, level.rawValue, escaped(message)] + fields).joined(separator: " ") + "\n"
    }

    /// Writes the line in one system call, so that lines of several threads do not mix. If standard error is gone, it is lost.
    package static func write(_ line: String) { _ = Glibc.write(STDERR_FILENO, line, line.utf8.count) }

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
