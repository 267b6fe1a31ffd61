/// The groups of the process that submitted a job; with its user they decide which other users' files it may use.
package struct CallerGroups: Sendable, Hashable {
    /// Further groups are ignored, as if the process were not in them; a user has a few dozen.
    private static let most = 1024

    /// The stored form: ids in decimal, sorted, with commas between them.
    package let text: String

    package init(_ ids: some Sequence<UInt32>) {
        text = Set(ids).sorted().prefix(Self.most).map(String.init).joined(separator: ",")
    }

    /// Restores stored groups; nil if the text is malformed.
    package init?(stored text: String) {
        var id: UInt64?
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                let next = (id ?? 0) * 10 + UInt64(byte - UInt8(ascii: "0"))
                guard next <= UInt32.max else { return nil }
                id = next
            case UInt8(ascii: ",") where id != nil: id = nil
            default: return nil
            }
        }
        guard text.isEmpty || id != nil else { return nil }
        self.text = text
    }

    package var storedSize: Int64 { Int64(text.utf8.count) }

    package var ids: Set<UInt32> { Set(text.split(separator: ",").compactMap { UInt32($0) }) }
}
