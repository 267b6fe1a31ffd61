import JobModel

/// Distinguishes versions of a file byte by byte, so that a transfer can be resumed.
struct Validator: Sendable, Hashable {
    /// Whether it is a strong entity tag, quotes included; otherwise it is `Last-Modified`, as the server wrote it.
    let isTag: Bool
    let text: String

    /// Whether a partial response is of this version: it must repeat a tag, but need not repeat a date.
    func fits(_ headers: HTTPFields) -> Bool {
        headers.first(name: isTag ? "ETag" : "Last-Modified").map { $0 == text } ?? !isTag
    }
}

extension Validator {
    /// The strong validator of a response, if it has one.
    ///
    /// A weak tag says that files may differ, so a date beside it does not count. Nor does a date in the same second as
    /// the response, as the file may change again within it.
    init?(_ headers: HTTPFields) {
        if let tag = headers.first(name: "ETag") {
            guard tag.hasPrefix("\""), tag.hasSuffix("\""), tag.utf8.count > 1 else { return nil }
            self.init(isTag: true, text: tag)
            return
        }
        guard let text = headers.first(name: "Last-Modified"), let modified = HTTPDate.time(text) else { return nil }
        let date = headers.first(name: "Date").flatMap(HTTPDate.time)
        if let date, date.seconds(since: modified) < 1 { return nil }
        self.init(isTag: false, text: text)
    }
}

/// The bytes of a file that a partial response contains: `bytes 100-199/1000`.
struct ContentRange: Sendable, Equatable {
    let start: Int64
    let end: Int64
    /// The size of the file; nil if the server does not know it (`*`).
    let total: Int64?

    /// Reads the value of a `Content-Range` field; nil if it is not valid.
    init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
        let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, ends.count == 2, let start = Decimal.number(ends[0]),
            let last = Decimal.number(ends[1]), start <= last, last < .max
        else { return nil }
        if parts[1] == "*" {
            total = nil
        } else {
            guard let size = Decimal.number(parts[1]), last < size else { return nil }
            total = size
        }
        self.start = start
        end = last + 1
    }
}
