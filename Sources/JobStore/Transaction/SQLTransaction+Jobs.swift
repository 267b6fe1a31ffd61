package import JobModel

extension SQLTransaction {
    package func document(of job: JobID) throws(StoreError) -> NewJobRow.Document? {
        try check()
        let entry = jobs.entries[job]
        if let entry, entry.document != nil || entry.change == .delete { return entry.document }
        let select = "SELECT \(Self.document) FROM jobs WHERE id = ?1"
        let found = try rows(select, [job], atMost: 1, named: { _ in "The spec of job \(job)" }) {
            row throws(DamagedRow) in try NewJobRow.Document(row, at: 0)
        }
        entry?.document = found.first
        return found.first
    }

    package func insert(_ new: NewJobRow) throws(StoreError) -> JobID {
        try check()
        let id = try nextJob()
        jobs.insert(new, as: id)
        return id
    }

    package func holder(ofKey key: String, owner: UInt32) throws(StoreError) -> KeyHolder? {
        try check()
        if let entry = jobs.holder(of: key, owner: owner), entry.row.holdsKey { return (entry.row.id, entry.digest) }
        guard let found = try stored(key, owner: owner) else { return nil }
        if jobs.holdsKey(found.job) { return found }
        // The index must not have two jobs with the key, not even for a moment.
        try flushJobs()
        return nil
    }

    package func update(_ job: JobRow) throws(StoreError) {
        try check()
        // A later insert with the key must find it taken.
        let takesKey = job.holdsKey && jobs.entries[job.id]?.row.holdsKey == false
        jobs.update(job)
        if takesKey { try flushJobs() }
    }

    /// To be called before a query for jobs.
    package func flushJobs() throws(StoreError) {
        try check()
        guard !jobs.changed.isEmpty else { return }
        try writeJobs()
        jobs.flushed()
    }

    // MARK: Queries

    package func suspects(after: JobID, limit: Int) throws(StoreError) -> [JobRow] {
        try jobs(by: "jobs_suspected", "crashes > 0 AND state < 4 AND id > ?1 ORDER BY id", [after], atMost: limit)
    }

    package func unfinishedChildren(
        of job: JobID, list: Int64, areGated: Bool, after: JobID, limit: Int
    ) throws(StoreError) -> [JobRow] {
        try jobs(
            by: areGated ? "jobs_gated" : "jobs_unfinished_children",
            "parent = ?1 AND list = ?2 AND id > ?3 AND state < 4\(areGated ? " AND waiting = 1" : "") ORDER BY id",
            [job, list, after], atMost: limit)
    }

    package func children(of job: JobID, fromLink link: Int, limit: Int) throws(StoreError) -> [JobRow] {
        try jobs(
            by: "jobs_by_parent", "parent = ?1 AND parent_link >= ?2 ORDER BY list, parent_index, id", [job, link],
            atMost: limit)
    }

    /// The condition of the index on finished root jobs.
    package static var isFinished: String { "state >= 4 AND parent IS NULL AND removing = 0 AND awaited = 0" }

    /// The jobs of an index that fit a condition, without damaged ones. The round keeps them.
    package func jobs(
        by index: String, _ condition: String, _ values: [(any Bindable)?], atMost limit: Int
    ) throws(StoreError) -> [JobRow] {
        try flushJobs()
        let select = "SELECT \(JobColumns.selected) FROM \(jobs(index)) WHERE \(condition)"
        return try rows(select, values, atMost: limit) { row in
            if let entry = jobs.entries[JobColumns.id(row)] { return entry.row }
            let job = legible(row)
            if let job { jobs.keep(job) }
            return job
        }
    }

    /// The job in a row; nil, after a report, if that is damaged.
    package func legible(_ row: Row) -> JobRow? {
        damage.legible("Job \(JobColumns.id(row))", try JobColumns.row(row))
    }
}

extension NewJobRow.Document {
    /// The content of the column `text`. An item begins with the form of its value, a byte with which no JSON begins.
    package var stored: [UInt8] {
        switch self {
        case .spec(let text): text
        case .item(let value): value.encoded
        }
    }

    init(_ row: some StoredColumns, at column: Int32) throws(DamagedRow) {
        guard let text = row.bytes(column) else { throw DamagedRow() }
        if let form = text.first, form < UInt8(ascii: "\t"), let item = try row.value(column) {
            self = .item(item)
        } else {
            self = .spec(text)
        }
    }
}
