package import JobModel

extension SQLTransaction {
    /// Selects what ``ListRow/init(_:)`` reads.
    package static var selectLists: String {
        """
        SELECT \(ListRow.columns), (SELECT template FROM templates WHERE job = lists.job AND list = lists.id) FROM lists
        """
    }

    package func list(of job: JobID) throws(StoreError) -> ListRow? {
        try check()
        if let known = lists[job] { return known }
        let found = try rows("\(Self.selectLists) WHERE job = ?1", [job], atMost: 1, list(in:))
        lists[job] = .some(found.first)
        return found.first
    }

    package func list(in row: Row) -> ListRow? {
        damage.legible("The list of job \(row.integer(0))", try ListRow(row))
    }

    package func put(_ list: ListRow) throws(StoreError) {
        // A template is stored at once, as it outlives the list.
        if try self.list(of: list.job)?.id != list.id { try storeTemplate(of: list) }
        lists[list.job] = list
        changedLists.insert(list.job)
    }

    private func storeTemplate(of list: ListRow) throws(StoreError) {
        guard let template = list.template else { return }
        try write(
            """
            INSERT INTO templates (job, list, link, template) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (job, list) \
            DO UPDATE SET link = excluded.link, template = excluded.template
            """, [list.job, list.id, list.link, template.encoded])
        if case .file(let blob) = template { try keep(blob, of: list.job, link: list.link) }
    }

    /// Remembers that a job needs a file, until it is deleted, or the list of a link.
    func keep(_ blob: BlobReference, of job: JobID, link: Int) throws(StoreError) {
        try write(
            """
            INSERT INTO blobs (life, number, size, job, list_link) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING
            """, [blob.life, blob.number, blob.size, job, link])
    }

    package func closeList(of job: JobID) throws(StoreError) {
        try check()
        lists[job] = .some(nil)
        changedLists.insert(job)
    }

    package func dropTemplates(of job: JobID, fromLink link: Int) throws(StoreError) {
        try write("DELETE FROM templates WHERE job = ?1 AND link >= ?2", [job, link])
        try write("DELETE FROM blobs WHERE job = ?1 AND list_link >= ?2", [job, link])
    }

    /// To be called before the commit.
    package func flushLists() throws(StoreError) {
        for job in changedLists.sorted() {
            try write("DELETE FROM lists WHERE job = ?1", [job])
            guard let list = try list(of: job) else { continue }
            try write(
                """
                INSERT INTO lists (\(ListRow.columns)) \
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
                """, list.values)
        }
        changedLists.removeAll()
    }
}

extension ListRow {
    static let columns =
        "job, id, link, phase, mode, concurrency, total, made, ended, failed, decided, admitted, bytes"

    /// The values of ``columns``.
    var values: [(any Bindable)?] {
        [
            job, id, link, phase.rawValue, mode.rawValue, concurrency, total, made, ended, failed, decided, admitted,
            bytes,
        ]
    }

    /// The list in the present row of a statement that selects ``columns`` and its template.
    init(_ row: some StoredColumns) throws(DamagedRow) {
        guard let phase = Phase(rawValue: Int(row.integer(3))), let mode = row.text(4).flatMap(ListMode.init(rawValue:))
        else { throw DamagedRow() }
        self.init(
            job: row.integer(0), id: row.integer(1), link: try row.count(2), phase: phase, mode: mode,
            concurrency: row.optionalInteger(5).map(Int.init), total: try row.count(6),
            template: try row.value(13))
        made = try row.count(7)
        ended = try row.count(8)
        failed = try row.count(9)
        decided = row.optionalInteger(10).map(Int.init)
        admitted = try row.count(11)
        bytes = row.integer(12)
    }
}
