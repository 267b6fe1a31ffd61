import JobModel

/// Writes the jobs of the buffer.
extension SQLiteTransaction {
    /// Writes all changes, in the order of the jobs' ids.
    func writeJobs() throws(StoreError) {
        let entries = jobs.changed.sorted { $0.row.id < $1.row.id }
        // First of all, as a new job may have the key of a deleted one.
        for entry in entries where entry.change == .delete { try delete(entry.row) }
        try insert(entries.filter { $0.change == .insert })
        for entry in entries where entry.change == .update { try store(entry.row) }
    }

    private func insert(_ new: [JobBuffer.Entry]) throws(StoreError) {
        var long: [(job: JobID, text: [UInt8])] = []
        var files: [(blob: BlobReference, job: JobID)] = []
        try insertJobs.insert(new) { entry, statement, start in
            let (row, text) = (entry.row, entry.document?.stored ?? [])
            let isLong = text.count > JobColumns.longestText
            if isLong { long.append((row.id, text)) }
            if case .item(.file(let blob)) = entry.document { files.append((blob, row.id)) }
            files += row.references.map { ($0, row.id) }
            JobColumns.bind(row, digest: entry.digest, to: statement, behind: start)
            statement.bind(isLong ? nil : text, at: start + JobColumns.selectedCount + 1)
        }
        for (job, text) in long { try write("INSERT INTO documents (job, text) VALUES (?1, ?2)", [job, text]) }
        try insertTags(of: new.filter { !$0.row.terms.tags.isEmpty }.map(\.row))
        for file in files { try keep(file.blob, of: file.job, link: JobColumns.ownRow) }
    }

    private func insertTags(of rows: [JobRow]) throws(StoreError) {
        var tagged: [(owner: UInt32, tag: String, job: JobID)] = []
        for row in rows {
            for tag in row.tags { tagged.append((row.owner, tag, row.id)) }
        }
        tagged.sort { ($0.owner, $0.tag, $0.job) < ($1.owner, $1.tag, $1.job) }
        try insertTags.insert(tagged) { row, statement, start in
            statement.bind(Int64(row.owner), at: start + 1)
            statement.bind(row.tag, at: start + 2)
            statement.bind(row.job, at: start + 3)
        }
    }

    func replaceTerms(of job: JobRow, was old: JobRow) throws(StoreError) {
        try flushJobs()
        try write(
            JobColumns.replaceTerms, [job.id, job.queue, job.priority, job.label, JobColumns.submitted(job)])
        guard job.tags != old.tags else { return }
        try deleteTags(of: old)
        try insertTags(of: [job])
    }

    private func store(_ row: JobRow) throws(StoreError) {
        JobColumns.bindChanging(row, to: updateJob)
        guard try updateJob.run() else {
            throw connection.failed(StoreError(.write, "Job \(row.id) is to be changed, but is not there."))
        }
        // The job keeps its files until it is deleted. One that it needs no longer is only kept from a sweep.
        for blob in row.references { try keep(blob, of: row.id, link: JobColumns.ownRow) }
    }

    private static let deletes = [
        "DELETE FROM jobs WHERE id = ?1", "DELETE FROM documents WHERE job = ?1",
        "DELETE FROM checkpoints WHERE job = ?1",
        "DELETE FROM blobs WHERE job = ?1 AND list_link = \(JobColumns.ownRow)",
    ]

    private func delete(_ row: JobRow) throws(StoreError) {
        for delete in Self.deletes { try write(delete, [row.id]) }
        try deleteTags(of: row)
    }

    private func deleteTags(of row: JobRow) throws(StoreError) {
        let delete = "DELETE FROM tags WHERE owner = ?1 AND tag = ?2 AND job = ?3"
        for tag in row.tags { try write(delete, [row.owner, tag, row.id]) }
    }
}
