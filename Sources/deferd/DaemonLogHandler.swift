import JobModel
import Logging
import NIOConcurrencyHelpers
import Systemd

/// The log handler of the daemon, whose level a reload changes for all loggers at once.
struct DaemonLogHandler: LogHandler {
    typealias Level = NIOLockedValueBox<Logger.Level>

    let destination: LogDestination
    let level: Level
    var metadata: Logger.Metadata = [:]

    var logLevel: Logger.Level {
        get { level.withLockedValue(\.self) }
        set { level.withLockedValue { $0 = newValue } }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// URLs are logged without their queries, which may contain tokens.
    func log(event: LogEvent) {
        var event = event
        event.message = "\(Masking.masked(log: event.message.description))"
        var all = metadata.merging(event.metadata ?? [:]) { $1 }
        if let error = event.error, all["error"] == nil { all["error"] = "\(error)" }
        let texts = all.mapValues { Masking.masked(log: $0.description) }
        destination.write(event, id: texts["event"].flatMap(CatalogEvent.init(name:))?.rawValue, metadata: texts)
    }
}
