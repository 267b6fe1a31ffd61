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
        guard
            text.isEmpty
                || text.split(separator: ",", omittingEmptySubsequences: false).allSatisfy({ UInt32($0) != nil })
        else { return nil }
        self.text = text
    }

    package var storedSize: Int64 { Int64(text.utf8.count) }

    package var ids: Set<UInt32> { Set(text.split(separator: ",").compactMap { UInt32($0) }) }
}
