package import JobModel

/// The jobs that a round has read or changed, as they are now.
package struct JobBuffer {
    package enum Change {
        case none, insert, update, delete
    }

    /// A class, as moving a row costs as much as finding it.
    package final class Entry {
        package fileprivate(set) var row: JobRow
        package fileprivate(set) var change: Change
        /// Whether its change may concern clients or runs of other nodes.
        package fileprivate(set) var isNews = true
        /// Of a job that is not in the database yet, or as it was read.
        package var document: NewJobRow.Document?
        package let digest: UInt64

        fileprivate init(_ row: JobRow, _ change: Change, _ document: NewJobRow.Document? = nil, digest: UInt64 = 0) {
            (self.row, self.change, self.document, self.digest) = (row, change, document, digest)
        }
    }

    package init() {}

    package private(set) var entries: [JobID: Entry] = [:]
    /// Those whose change is not in the database, in no order.
    package private(set) var changed: [Entry] = []
    private var keys: [RowKey: JobID] = [:]

    /// The job that has a key and is not in the database yet.
    package func holder(of key: String, owner: UInt32) -> Entry? {
        keys[.key(owner: owner, key)].flatMap { entries[$0] }
    }

    /// Whether the job that has a key in the database still holds it after this round's changes.
    package func holdsKey(_ job: JobID) -> Bool { entries[job].map { $0.change != .delete && $0.row.holdsKey } ?? true }

    package mutating func keep(_ row: JobRow) { entries[row.id] = Entry(row, .none) }

    package mutating func insert(_ new: NewJobRow, as id: JobID) {
        let entry = Entry(new.row, .insert, new.document, digest: new.digest)
        entry.row.id = id
        if let key = new.row.key { keys[.key(owner: new.row.owner, key)] = id }
        entries[id] = entry
        changed.append(entry)
    }

    package mutating func update(_ row: JobRow) {
        guard let entry = entries[row.id] else {
            let entry = Entry(row, .update)
            entries[row.id] = entry
            return changed.append(entry)
        }
        if entry.change == .none {
            changed.append(entry)
            entry.change = .update
            entry.isNews = false
        }
        entry.isNews = entry.isNews || row.isNews(after: entry.row)
        entry.row = row
    }

    package mutating func delete(_ row: JobRow) {
        guard let entry = entries[row.id] else { return }
        // A later job may have taken its key.
        if let key = row.key.map({ RowKey.key(owner: row.owner, $0) }), keys[key] == row.id { keys[key] = nil }
        if entry.change == .insert {
            entries[row.id] = nil
            entry.change = .none
            return
        }
        if entry.change == .none { changed.append(entry) }
        (entry.change, entry.isNews, entry.document) = (.delete, true, nil)
    }

    /// What is here is in the database.
    package mutating func flushed() {
        for entry in changed {
            if entry.change == .delete { entries[entry.row.id] = nil }
            entry.change = .none
        }
        changed.removeAll(keepingCapacity: true)
        keys.removeAll(keepingCapacity: true)
    }

    package mutating func removeAll() {
        entries.removeAll(keepingCapacity: entries.count < 4096)
        changed.removeAll(keepingCapacity: true)
        keys.removeAll(keepingCapacity: true)
    }
}
