package import JobModel

extension SQLTransaction {
    /// Selects what ``ListRow/init(_:)`` reads.
    package static var selectLists: String {
        """
        SELECT job, id, record, (SELECT template FROM templates WHERE job = lists.job AND list = lists.id) FROM lists
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
            let record = ByteCoder.bytes { coder throws(DamagedRow) in
                _ = try ListRow(list, job: job, id: list.id, template: nil, by: &coder)
            }
            try write("INSERT INTO lists (job, id, record) VALUES (?1, ?2, ?3)", [job, list.id, record])
        }
        changedLists.removeAll()
    }
}

extension ListRow {
    /// The list in the present row of a statement that selects its job, id, record and template.
    init(_ row: some StoredColumns) throws(DamagedRow) {
        let template = try row.value(3)
        self = try row.decoded(2) { coder throws(DamagedRow) in
            try ListRow(nil, job: row.integer(0), id: row.integer(1), template: template, by: &coder)
        }
    }

    /// A list whose other members pass through a coder.
    fileprivate init(
        _ passed: ListRow?, job: JobID, id: Int64, template: StoredValue?, by coder: inout ByteCoder
    ) throws(DamagedRow) {
        guard let phase = Phase(rawValue: try coder.count(passed?.phase.rawValue)),
            let mode = ListMode(rawValue: try coder.text(passed?.mode.rawValue))
        else { throw DamagedRow() }
        self.init(
            job: job, id: id, link: try coder.count(passed?.link), phase: phase, mode: mode,
            concurrency: try coder.has(passed?.concurrency) ? coder.count(passed?.concurrency) : nil,
            total: try coder.count(passed?.total), template: template)
        made = try coder.count(passed?.made)
        ended = try coder.count(passed?.ended)
        failed = try coder.count(passed?.failed)
        decided = try coder.has(passed?.decided) ? coder.count(passed?.decided) : nil
        admitted = try coder.count(passed?.admitted)
        bytes = try coder.number(passed?.bytes)
    }
}
