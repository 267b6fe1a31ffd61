import JobModel

/// The header field by which a server asks to be left alone for a while.
enum RetryAfter {
    /// Seconds from `now`; nil where the value is neither a number of seconds nor a date.
    static func seconds(_ value: String, now: Timestamp) -> Double? {
        let value = value.drop { $0 == " " }
        if !value.isEmpty, value.utf8.allSatisfy({ (48...57).contains($0) }) { return Double(value) }
        return HTTPDate.time(String(value)).map { max(0, $0.seconds(since: now)) }
    }
}
