import Logging

extension LogEvent {
    /// Everything said about the event, sorted by key; the event's own metadata wins over the logger's.
    func metadata(over base: Logger.Metadata, provider: Logger.MetadataProvider?) -> [(key: String, value: String)] {
        var all = base
        if let provider { all.merge(provider.get()) { _, provided in provided } }
        if let metadata { all.merge(metadata) { _, own in own } }
        if let error { all["error"] = "\(error)" }
        return all.sorted { $0.key < $1.key }.map { ($0.key, "\($0.value)") }
    }
}
