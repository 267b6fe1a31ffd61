/// Which bytes of a file a partial response brings: `bytes 100-199/1000`.
struct ContentRange: Sendable, Equatable {
    let start: Int64
    /// The last byte's place.
    let end: Int64
    /// Nil where the server does not know (`*`).
    let total: Int64?

    /// The range that `text` writes; nil where it writes none, or one that contradicts itself.
    init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
        let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, ends.count == 2, let start = Int64(ends[0]), let end = Int64(ends[1]),
            0 <= start, start <= end
        else { return nil }
        if parts[1] == "*" {
            total = nil
        } else {
            guard let size = Int64(parts[1]), end < size else { return nil }
            total = size
        }
        self.start = start
        self.end = end
    }

    init?(_ response: IncomingResponse) {
        guard let text = response.field("Content-Range") else { return nil }
        self.init(text)
    }
}
