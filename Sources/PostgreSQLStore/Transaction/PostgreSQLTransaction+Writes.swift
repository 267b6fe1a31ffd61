import JobModel
import JobStore

/// Sends the jobs of the buffer.
extension PostgreSQLTransaction {
    /// The types of the columns in ``JobColumns/all``.
    private static let kinds = JobColumns.all.map { name -> PostgreSQLParameter.Kind in
        switch name {
        case "queue", "host": .text
        case "key", "label", "submitted", "life", "carried": .bytes
        default: .integer
        }
    }

    /// The columns that an update stores.
    private static let changing = (JobColumns.all.firstIndex(of: "state") ?? 0)..<JobColumns.all.count
    private static let assignments = JobColumns.all[changing].map { "\($0) = new.\($0)" }.joined(separator: ", ")
    private static let changingNames = (["id"] + JobColumns.all[changing]).joined(separator: ", ")

    /// The number of the column that has the node to which a job is bound; empty for none. SQLite has no such column.
    private static let node = Int32(JobColumns.all.count + 1)

    /// Sends all changes, in the order of the jobs' ids.
    func writeJobs() throws(StoreError) {
        let entries = jobs.changed.sorted { $0.row.id < $1.row.id }
        if turn?.hasOthers == true { touched.formUnion(entries.lazy.filter(\.isNews).map(\.row.id)) }
        for entry in entries where entry.change != .delete { noteStart(entry.row) }
        // First of all, as a new job may have the key of a deleted one.
        try delete(entries.filter { $0.change == .delete }.map(\.row))
        try inParts(entries.filter { $0.change == .insert }, of: 1000, insert)
        // A plan that was made for an empty table compares each of them with each.
        try inParts(entries.filter { $0.change == .update }.map(\.row), of: 100, update)
        for entry in entries where entry.change == .delete { missing.insert(entry.row.id) }
        holders.removeAll()
    }

    /// Sends at most `count` rows with a statement: the server begins with some while others are written.
    private func inParts<Row>(
        _ rows: [Row], of count: Int, _ send: ([Row]) throws(StoreError) -> Void
    ) throws(StoreError) {
        for start in stride(from: 0, to: rows.count, by: count) { try send(Array(rows[start...].prefix(count))) }
    }

    private func insert(_ new: [JobBuffer.Entry]) throws(StoreError) {
        let rows = PostgreSQLRowArrays(Self.kinds + [.text])
        let documents = PostgreSQLRowArrays([.integer, .bytes])
        var files: [(blob: BlobReference, job: JobID)] = []
        for entry in new {
            JobColumns.bind(entry.row, digest: entry.digest, to: rows, behind: 0)
            rows.bind(entry.row.node ?? "", at: Self.node)
            rows.endRow()
            documents.bind(entry.row.id, at: 1)
            documents.bind(entry.document?.stored ?? [], at: 2)
            documents.endRow()
            if case .item(.file(let blob)) = entry.document { files.append((blob, entry.row.id)) }
            files += entry.row.references.map { ($0, entry.row.id) }
        }
        try write("INSERT INTO jobs (\(JobColumns.selected), node) SELECT * FROM \(rows.table)", rows.parameters)
        try write("INSERT INTO documents (job, text) SELECT * FROM \(documents.table)", documents.parameters)
        try insertTags(of: new.filter { !$0.row.terms.tags.isEmpty }.map(\.row))
        try insert(files)
    }

    private func insertTags(of rows: [JobRow]) throws(StoreError) {
        let tags = tags(rows.flatMap { row in row.tags.map { (row, $0) } })
        guard tags.count > 0 else { return }
        try write(
            "INSERT INTO tags (owner, tag, job) SELECT * FROM \(tags.table) ON CONFLICT DO NOTHING", tags.parameters)
    }

    private func tags(_ tags: [(row: JobRow, tag: String)]) -> PostgreSQLRowArrays {
        PostgreSQLRowArrays([.integer, .bytes, .integer], tags.map { [$0.row.owner, $0.tag, $0.row.id] })
    }

    private func update(_ changed: [JobRow]) throws(StoreError) {
        let rows = PostgreSQLRowArrays(Self.kinds + [.text])
        for row in changed {
            JobColumns.bindChanging(row, to: rows, behind: 0)
            rows.bind(row.node ?? "", at: Self.node)
            rows.endRow()
        }
        let used = [rows.columns[0]] + rows.columns[Self.changing] + rows.columns.suffix(1)
        let arrays = used.enumerated().map { "$\($0 + 1)::\($1.kind.name)[]" }.joined(separator: ", ")
        try write(
            """
            UPDATE jobs SET \(Self.assignments), node = new.node FROM unnest(\(arrays)) AS new (\(Self.changingNames), node) \
            WHERE jobs.id = new.id AND jobs.id = ANY ($1)
            """, used.map { $0.parameter }, changes: changed.count)
        try insert(changed.flatMap { row in row.references.map { ($0, row.id) } })
    }

    func replaceTerms(of row: JobRow, was old: JobRow) throws(StoreError) {
        try flushJobs()
        noteStart(row)
        try write(
            JobColumns.replaceTerms, row.id, row.queue, row.priority, row.label, JobColumns.submitted(row))
        guard old.tags != row.tags else { return }
        try delete(tags: old.tags.map { (row, $0) })
        try insertTags(of: [row])
    }

    /// Remembers that a job needs files, until it is deleted.
    private func insert(_ files: [(blob: BlobReference, job: JobID)]) throws(StoreError) {
        guard !files.isEmpty else { return }
        let rows = PostgreSQLRowArrays(
            Array(repeating: .integer, count: 5),
            files.map { [$0.blob.life, $0.blob.number, $0.blob.size, $0.job, JobColumns.ownRow] })
        try write(
            "INSERT INTO blobs (life, number, size, job, list_link) SELECT * FROM \(rows.table) ON CONFLICT DO NOTHING",
            rows.parameters)
    }

    private static let deletes = [
        "DELETE FROM jobs WHERE id = ANY ($1)", "DELETE FROM documents WHERE job = ANY ($1)",
        "DELETE FROM checkpoints WHERE job = ANY ($1)",
        "DELETE FROM blobs WHERE job = ANY ($1) AND list_link = \(JobColumns.ownRow)",
    ]

    private func delete(_ rows: [JobRow]) throws(StoreError) {
        guard !rows.isEmpty else { return }
        let ids = [PostgreSQLParameter.array(rows.map(\.id))]
        for delete in Self.deletes { try write(delete, ids) }
        try delete(tags: rows.flatMap { row in row.tags.map { (row, $0) } })
    }

    private func delete(tags old: [(row: JobRow, tag: String)]) throws(StoreError) {
        guard !old.isEmpty else { return }
        let tags = tags(old)
        try write(
            """
            DELETE FROM tags WHERE ctid = ANY (ARRAY(SELECT (\
            SELECT ctid FROM tags WHERE (owner, tag, job) = (old.owner, old.tag, old.job)) \
            FROM \(tags.table) AS old (owner, tag, job)))
            """, tags.parameters)
    }
}
