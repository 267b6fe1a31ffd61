/// The groups of the process that submitted a job: with its user they decide which of others' files the job may use.
package struct CallerGroups: Sendable, Hashable {
    /// More are left out, as if the process were not in them; a user is in some dozens.
    private static let most = 1024

    /// Their ids in decimal and in order, with commas between them, as they are stored.
    package let text: String

    package init(_ ids: some Sequence<UInt32>) {
        text = Set(ids).sorted().prefix(Self.most).map(String.init).joined(separator: ",")
    }

    /// What was stored; nil where it makes no sense.
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
