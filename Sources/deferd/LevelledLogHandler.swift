import JobModel
import Logging
import Synchronization

/// A log handler whose level can be changed for all loggers at once, as a reload of the configuration does.
struct LevelledLogHandler: LogHandler {
    /// The level that all loggers share.
    final class Level: Sendable {
        private let value: Mutex<Logger.Level>

        init(_ level: Logger.Level) {
            value = Mutex(level)
        }

        var current: Logger.Level {
            get { value.withLock(\.self) }
            set { value.withLock { $0 = newValue } }
        }
    }

    private var inner: any LogHandler
    private let level: Level

    init(_ inner: any LogHandler, level: Level) {
        self.inner = inner
        self.inner.logLevel = .trace
        self.level = level
    }

    var logLevel: Logger.Level {
        get { level.current }
        set { level.current = newValue }
    }

    var metadata: Logger.Metadata {
        get { inner.metadata }
        set { inner.metadata = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { inner[metadataKey: key] }
        set { inner[metadataKey: key] = newValue }
    }

    /// URLs are logged without their queries, which may have tokens.
    func log(event: LogEvent) {
        var event = event
        event.message = "\(Masking.masked(log: event.message.description))"
        event.metadata = event.metadata?.mapValues { "\(Masking.masked(log: $0.description))" }
        if let error = event.error {
            event.metadata = (event.metadata ?? [:]).merging(["error": "\(Masking.masked(log: "\(error)"))"]) {
                own, _ in own
            }
            event.error = nil
        }
        inner.log(event: event)
    }
}
