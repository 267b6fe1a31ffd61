import JobModel

/// Writes the jobs of a ``JobBuffer`` into the database.
final class JobWrites {
    private let texts = BoundTexts()
    private let jobs: RowInserts
    private let documents: RowInserts
    private let tags: RowInserts
    private let blobs: RowInserts
    private let update: PreparedStatement
    private let deletes: [PreparedStatement]
    private let deleteTag: PreparedStatement
    private let connection: SQLiteConnection

    /// Stands for a file that a job's own row names, and not the template of a list of its.
    static let ownRow: Int64 = -1

    init(_ connection: SQLiteConnection) throws(StoreError) {
        self.connection = connection
        jobs = try RowInserts(into: "jobs", JobColumns.all, keptIn: texts, on: connection)
        documents = try RowInserts(into: "documents", ["job", "is_item", "text"], keptIn: texts, on: connection)
        tags = try RowInserts(
            "INSERT OR IGNORE", into: "tags", ["owner", "tag", "job"], keptIn: texts, on: connection)
        blobs = try RowInserts(
            "INSERT OR IGNORE", into: "blobs", ["life", "number", "size", "job", "list_link"], keptIn: texts,
            on: connection)
        update = try connection.prepare(JobColumns.update)
        deletes = try [
            "jobs WHERE id = ?1", "documents WHERE job = ?1", "checkpoints WHERE job = ?1",
            "blobs WHERE job = ?1 AND list_link = \(Self.ownRow)",
        ].map { (condition) throws(StoreError) in try connection.prepare("DELETE FROM \(condition)") }
        deleteTag = try connection.prepare("DELETE FROM tags WHERE owner = ?1 AND tag = ?2 AND job = ?3")
    }

    /// Writes all changes, in the order of the jobs' ids.
    func write(_ buffer: JobBuffer) throws(StoreError) {
        var new: [JobBuffer.Entry] = []
        var changed: [JobBuffer.Entry] = []
        for entry in buffer.changed.sorted(by: { $0.row.id < $1.row.id }) {
            switch entry.change {
            case .none: break
            case .insert: new.append(entry)
            case .update: changed.append(entry)
            // First of all, as a new job may have its key.
            case .delete: try delete(entry.row)
            }
        }
        if !new.isEmpty { try insert(new) }
        for entry in changed {
            defer { texts.removeAll() }
            update.bind(entry.row.id, at: 1)
            JobColumns.bindChanging(entry.row, to: update, from: 1, keptIn: texts)
            guard try update.run() else {
                throw connection.failed(StoreError(.write, "Job \(entry.row.id) is to be changed, but is not there."))
            }
        }
        try insertBlobs(of: changed)
    }

    private func insert(_ new: [JobBuffer.Entry]) throws(StoreError) {
        try jobs.insert(new.count) { index, statement, start in
            JobColumns.bind(new[index].row, digest: new[index].digest, to: statement, from: start, keptIn: texts)
        }
        try documents.insert(new.count) { index, statement, start in
            statement.bind(new[index].row.id, at: start + 1)
            switch new[index].document {
            case .spec(let text):
                statement.bind(0, at: start + 2)
                statement.bind(bytes: text, at: start + 3, keptIn: texts)
            case .item(let value):
                statement.bind(1, at: start + 2)
                statement.bind(bytes: value.encoded, at: start + 3, keptIn: texts)
            case nil: break
            }
        }
        var tagged: [(owner: UInt32, tag: String, job: JobID)] = []
        for entry in new {
            for tag in entry.row.tags { tagged.append((entry.row.owner, tag, entry.row.id)) }
        }
        tagged.sort { ($0.owner, $0.tag, $0.job) < ($1.owner, $1.tag, $1.job) }
        try tags.insert(tagged.count) { index, statement, start in
            statement.bind(Int64(tagged[index].owner), at: start + 1)
            statement.bind(tagged[index].tag, at: start + 2, keptIn: texts)
            statement.bind(tagged[index].job, at: start + 3)
        }
        try insertBlobs(of: new)
        for entry in new {
            if case .item(.file(let blob)) = entry.document {
                try insert([blob], of: entry.row.id, listLink: Self.ownRow)
            }
        }
    }

    private func insertBlobs(of entries: [JobBuffer.Entry]) throws(StoreError) {
        for entry in entries {
            let references = entry.row.references
            if !references.isEmpty { try insert(references, of: entry.row.id, listLink: Self.ownRow) }
        }
    }

    /// Remembers that a job needs files, until it is deleted, or with a `listLink` until the templates of that link are. A
    /// file that it no longer needs is remembered as long; that only keeps a sweep from removing it.
    func insert(_ references: [BlobReference], of job: JobID, listLink: Int64) throws(StoreError) {
        try blobs.insert(references.count) { index, statement, start in
            statement.bind(references[index].life, at: start + 1)
            statement.bind(references[index].number, at: start + 2)
            statement.bind(references[index].size, at: start + 3)
            statement.bind(job, at: start + 4)
            statement.bind(listLink, at: start + 5)
        }
    }

    private func delete(_ row: JobRow) throws(StoreError) {
        for statement in deletes {
            statement.bind(row.id, at: 1)
            try statement.run()
        }
        for tag in row.tags {
            deleteTag.bind(Int64(row.owner), at: 1)
            deleteTag.bind(tag, at: 2)
            deleteTag.bind(row.id, at: 3)
            try deleteTag.run()
        }
    }
}
