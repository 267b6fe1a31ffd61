package import JobModel

extension SQLiteTransaction {
    func list(of job: JobID) throws(StoreError) -> ListRow? {
        try check()
        if let known = lists[job] { return known }
        let select = try statement(
            """
            SELECT \(ListRow.columns), (SELECT template FROM templates WHERE job = lists.job AND list = lists.id) \
            FROM lists WHERE job = ?1
            """, job)
        let found = try select.row { row throws(StoreError) in
            damage.legible(.other("The list of job \(job)")) { () throws(DamagedRow) in try ListRow(row) }
        }
        lists[job] = .some(found)
        return found
    }

    func put(_ list: ListRow) throws(StoreError) {
        // A template is stored at once, as it outlives the list.
        if try self.list(of: list.job)?.id != list.id { try storeTemplate(of: list) }
        lists[list.job] = list
        changedLists.insert(list.job)
    }

    func closeList(of job: JobID) throws(StoreError) {
        try check()
        lists[job] = .some(nil)
        changedLists.insert(job)
    }

    func dropTemplates(of job: JobID, fromLink link: Int) throws(StoreError) {
        try statement("DELETE FROM templates WHERE job = ?1 AND link >= ?2", job, link).run()
        try statement("DELETE FROM blobs WHERE job = ?1 AND list_link >= ?2", job, link).run()
    }

    func flushLists() throws(StoreError) {
        for job in changedLists.sorted() {
            if let row = try list(of: job) {
                try store(row)
            } else {
                try statement("DELETE FROM lists WHERE job = ?1", job).run()
            }
        }
        changedLists.removeAll()
    }

    private func storeTemplate(of list: ListRow) throws(StoreError) {
        guard let template = list.template else { return }
        try statement(
            "INSERT OR REPLACE INTO templates (job, list, link, template) VALUES (?1, ?2, ?3, ?4)", list.job, list.id,
            list.link, template.encoded
        ).run()
        if case .file(let blob) = template { try writes.insert([blob], of: list.job, listLink: list.link) }
    }

    private func store(_ list: ListRow) throws(StoreError) {
        try statement(
            """
            INSERT OR REPLACE INTO lists (\(ListRow.columns)) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
            """, list.values
        ).run()
    }
}

extension ListRow {
    package static let columns =
        "job, id, link, phase, mode, concurrency, total, made, ended, failed, decided, admitted, bytes"

    /// The values of ``columns``.
    package var values: [(any Bindable)?] {
        [
            job, id, link, phase.rawValue, mode.rawValue, concurrency, total, made, ended, failed, decided, admitted,
            bytes,
        ]
    }

    /// The list in the present row of a statement that selects ``columns`` and its template.
    package init(_ row: some StoredColumns) throws(DamagedRow) {
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
