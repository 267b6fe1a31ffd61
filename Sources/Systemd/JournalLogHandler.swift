import Glibc
package import Logging

/// Sends log messages to the journal, with their metadata as separate fields.
///
/// A key becomes the field `DEFERD_<KEY>`, so `journalctl DEFERD_JOB=42` finds the entries of that job. If the journal
/// refuses a message, it goes to standard error instead.
package struct JournalLogHandler: LogHandler {
    package var logLevel: Logger.Level
    package var metadata: Logger.Metadata = [:]
    package var metadataProvider: Logger.MetadataProvider?
    private let identifier: String

    package init(identifier: String = "deferd", logLevel: Logger.Level = .info) {
        self.identifier = identifier
        self.logLevel = logLevel
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        let metadata = event.metadata(over: metadata, provider: metadataProvider)
        let result = JournalEntry(event: event, metadata: metadata, identifier: identifier).send()
        guard result < 0 else { return }
        StandardErrorLogHandler.write(
            StandardErrorLogHandler.line(
                level: event.level,
                message: event.message.description,
                metadata: metadata + [("journal", "refused this message: error \(-result)")]
            )
        )
    }

    /// Whether the descriptor is connected to the journal, so that messages should go there with their fields.
    ///
    /// The service manager sets `JOURNAL_STREAM` to the device and inode of the stream that it connected. A process
    /// whose standard error was redirected later still has the variable, so both values are compared.
    package static func isJournal(
        _ descriptor: Int32 = STDERR_FILENO,
        stream: String? = getenv("JOURNAL_STREAM").map { String(cString: $0) }
    ) -> Bool {
        guard let stream else { return false }
        let parts = stream.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let device = UInt64(parts[0]), let inode = UInt64(parts[1]) else { return false }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return false }
        return UInt64(status.st_dev) == device && UInt64(status.st_ino) == inode
    }
}

extension LogEvent {
    /// All metadata of the event, sorted by key; the event's own metadata overrides the logger's.
    func metadata(over base: Logger.Metadata, provider: Logger.MetadataProvider?) -> [(key: String, value: String)] {
        var all = base
        if let provider { all.merge(provider.get()) { _, provided in provided } }
        if let metadata { all.merge(metadata) { _, own in own } }
        if let error { all["error"] = "\(error)" }
        return all.sorted { $0.key < $1.key }.map { ($0.key, "\($0.value)") }
    }
}
