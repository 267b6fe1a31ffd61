/// Numbers in fields of an HTTP header: digits and nothing else.
enum Decimal {
    /// The number, or nil where `text` is none or one that does not fit; `Int64` alone would read signs as well.
    static func number(_ text: some StringProtocol) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return Int64(text)
    }
}
