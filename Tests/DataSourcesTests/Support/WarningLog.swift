import Logging
import Synchronization

/// A log that keeps the messages of warnings and errors.
struct WarningLog: LogHandler {
    final class Warnings: Sendable {
        private let state = Mutex<[String]>([])

        var messages: [String] { state.withLock(\.self) }

        func append(_ message: String) { state.withLock { $0.append(message) } }
    }

    let warnings: Warnings
    var logLevel = Logger.Level.warning
    var metadata = Logger.Metadata()

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { warnings.append("\(event.message)") }
}
