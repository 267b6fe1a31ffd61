import JobModel

/// Writes the jobs of a ``JobBuffer`` into the database.
final class JobWrites {
    private let jobs: RowInserts
    private let documents: RowInserts
    private let tags: RowInserts
    private let blobs: RowInserts
    private let update: PreparedStatement
    private let connection: SQLiteConnection

    init(_ connection: SQLiteConnection) throws(StoreError) {
        self.connection = connection
        jobs = try RowInserts(into: "jobs", JobColumns.all + ["is_item", "text"], on: connection)
        documents = try RowInserts(into: "documents", ["job", "text"], on: connection)
        tags = try RowInserts("INSERT OR IGNORE", into: "tags", ["owner", "tag", "job"], on: connection)
        blobs = try RowInserts(
            "INSERT OR IGNORE", into: "blobs", ["life", "number", "size", "job", "list_link"], on: connection)
        update = try connection.prepare(JobColumns.update)
    }

    /// Writes all changes, in the order of the jobs' ids.
    func write(_ buffer: JobBuffer) throws(StoreError) {
        let entries = buffer.changed.sorted { $0.row.id < $1.row.id }
        // First of all, as a new job may have the key of a deleted one.
        for entry in entries where entry.change == .delete { try delete(entry.row) }
        try insert(entries.filter { $0.change == .insert })
        for entry in entries where entry.change == .update { try update(entry.row) }
    }

    private func insert(_ new: [JobBuffer.Entry]) throws(StoreError) {
        var long: [(job: JobID, text: [UInt8])] = []
        try jobs.insert(new) { entry, statement, start in
            let (isItem, text) = entry.document?.stored ?? (false, [])
            let isLong = text.count > JobColumns.longestText
            if isLong { long.append((entry.row.id, text)) }
            JobColumns.bind(entry.row, digest: entry.digest, to: statement, behind: start)
            statement.bind(isItem, at: start + JobColumns.selectedCount + 1)
            statement.bind(isLong ? nil : text, at: start + JobColumns.selectedCount + 2)
        }
        try documents.insert(long) { document, statement, start in
            statement.bind(document.job, at: start + 1)
            statement.bind(document.text, at: start + 2)
        }
        try insertTags(of: new.filter { !$0.row.terms.tags.isEmpty }.map(\.row))
        for entry in new {
            try insert(entry.row.references, of: entry.row.id)
            if case .item(.file(let blob)) = entry.document { try insert([blob], of: entry.row.id) }
        }
    }

    private func insertTags(of rows: [JobRow]) throws(StoreError) {
        var tagged: [(owner: UInt32, tag: String, job: JobID)] = []
        for row in rows {
            for tag in row.tags { tagged.append((row.owner, tag, row.id)) }
        }
        tagged.sort { ($0.owner, $0.tag, $0.job) < ($1.owner, $1.tag, $1.job) }
        try tags.insert(tagged) { row, statement, start in
            statement.bind(row.owner, at: start + 1)
            statement.bind(row.tag, at: start + 2)
            statement.bind(row.job, at: start + 3)
        }
    }

    /// Replaces the terms of a job that is in the database, with these tags.
    func replaceTerms(of row: JobRow, tags: [String]) throws(StoreError) {
        try connection.statement(
            JobColumns.replaceTerms, row.id, row.queue, row.priority, row.label, JobColumns.submitted(row)
        ).run()
        guard tags != row.tags else { return }
        try delete(tags, of: row)
        try insertTags(of: [row])
    }

    private func update(_ row: JobRow) throws(StoreError) {
        JobColumns.bindChanging(row, to: update)
        guard try update.run() else {
            throw connection.failed(StoreError(.write, "Job \(row.id) is to be changed, but is not there."))
        }
        try insert(row.references, of: row.id)
    }

    /// Remembers that a job needs files, until it is deleted. A file that it no longer needs is remembered as long; that only
    /// keeps a sweep from removing it.
    private func insert(_ references: [BlobReference], of job: JobID) throws(StoreError) {
        try blobs.insert(references) { blob, statement, start in
            statement.bind(blob.life, at: start + 1)
            statement.bind(blob.number, at: start + 2)
            statement.bind(blob.size, at: start + 3)
            statement.bind(job, at: start + 4)
            statement.bind(JobColumns.ownRow, at: start + 5)
        }
    }

    private static let deletes = [
        "DELETE FROM jobs WHERE id = ?1", "DELETE FROM documents WHERE job = ?1",
        "DELETE FROM checkpoints WHERE job = ?1",
        "DELETE FROM blobs WHERE job = ?1 AND list_link = \(JobColumns.ownRow)",
    ]

    private func delete(_ row: JobRow) throws(StoreError) {
        for delete in Self.deletes { try connection.statement(delete, row.id).run() }
        try delete(row.tags, of: row)
    }

    private func delete(_ tags: [String], of row: JobRow) throws(StoreError) {
        let delete = "DELETE FROM tags WHERE owner = ?1 AND tag = ?2 AND job = ?3"
        for tag in tags { try connection.statement(delete, row.owner, tag, row.id).run() }
    }
}
