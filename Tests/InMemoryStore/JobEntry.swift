import JobModel

/// A stored job; each change creates a new one.
final class JobEntry: Sendable {
    let row: JobRow
    let document: NewJobRow.Document
    let digest: UInt64
    /// Its key until it is released.
    let key: OwnedKey?
    /// Its key while no other job can have it.
    var heldKey: OwnedKey? { row.holdsKey ? key : nil }

    init(row: JobRow, document: NewJobRow.Document, digest: UInt64, key: OwnedKey?) {
        self.row = row
        self.document = document
        self.digest = digest
        self.key = key
    }

    func with(_ row: JobRow) -> JobEntry { JobEntry(row: row, document: document, digest: digest, key: key) }

    var withoutKey: JobEntry { JobEntry(row: row, document: document, digest: digest, key: nil) }
}
