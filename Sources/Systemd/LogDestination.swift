import Glibc
package import Logging

/// Where log messages go: to the journal with their metadata as separate fields, or to standard error, one line each.
///
/// In the journal, a key becomes the field `DEFERD_<KEY>`, so `journalctl DEFERD_JOB=42` finds the entries of that job.
package enum LogDestination: Sendable {
    case journal, standardError

    /// The journal if the descriptor is connected to it, else standard error.
    ///
    /// The service manager sets `JOURNAL_STREAM` to the device and inode of the stream that it connected. A process whose
    /// standard error was redirected later still has the variable, so both values are compared.
    package static func current(
        _ descriptor: Int32 = STDERR_FILENO, stream: String? = getenv("JOURNAL_STREAM").map { String(cString: $0) }
    ) -> LogDestination {
        var status = stat()
        guard fstat(descriptor, &status) == 0, stream == "\(status.st_dev):\(status.st_ino)" else {
            return .standardError
        }
        return .journal
    }

    /// Writes the message of `event` with all its metadata, and its `id` in the journal's catalog. If the journal refuses it, it
    /// goes to standard error.
    package func write(_ event: LogEvent, id: String?, metadata: [String: String]) {
        var metadata = metadata.sorted { $0.key < $1.key }
        if self == .journal {
            let result = JournalEntry(event, id: id, metadata: metadata).send()
            if result >= 0 { return }
            metadata.append(("journal", "refused this message: error \(-result)"))
        }
        StandardErrorLine.write(
            StandardErrorLine.text(level: event.level, message: event.message.description, metadata: metadata))
    }
}
