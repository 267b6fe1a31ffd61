/// The groups of the process that submitted a job; with its user they decide which other users' files it may use.
package struct CallerGroups: Sendable, Hashable {
    /// Further groups are ignored, as if the process were not in them; a user has a few dozen.
    private static let most = 1024

    /// The stored form: ids in decimal, sorted, with commas between them.
    package let text: String

    package init(_ ids: some Sequence<UInt32>) {
        text = Set(ids).sorted().prefix(Self.most).map(String.init).joined(separator: ",")
    }

    package init(stored text: String) { self.text = text }

    package var storedSize: Int64 { Int64(text.utf8.count) }

    package var ids: Set<UInt32> { Set(text.split(separator: ",").compactMap { UInt32($0) }) }
}
