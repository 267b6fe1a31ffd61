/// The bytes of a file that a partial response contains: `bytes 100-199/1000`.
struct ContentRange: Sendable, Equatable {
    let start: Int64
    /// The byte behind the last.
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

    init?(_ response: IncomingResponse) {
        guard let text = response.field("Content-Range") else { return nil }
        self.init(text)
    }
}
