import JobModel

/// The open lists that a round has read or changed.
struct ListBuffer {
    struct Entry {
        /// Nil if it is over.
        var row: ListRow?
        var isChanged = false
        /// The list whose template, if any, is stored; nil if unknown.
        var stored: Int64?
    }

    var entries: [JobID: Entry] = [:]
}

extension SQLiteTransaction {
    private static let columns = """
        job, id, link, phase, mode, concurrency, total, made, ended, failed, decided, admitted, bytes, has_template
        """

    func list(of job: JobID) throws(StoreError) -> ListRow? {
        try check()
        if let entry = lists.entries[job] { return entry.row }
        let select = try statement(
            """
            SELECT \(Self.columns), (SELECT template FROM templates WHERE job = lists.job AND list = lists.id) \
            FROM lists WHERE job = ?1
            """, job)
        let found = try select.row { row throws(StoreError) in
            damage.legible("The list of job \(job)") { () throws(DamagedRow) in try ListRow(row) }
        }
        guard let found else { return nil }
        lists.entries[job] = ListBuffer.Entry(row: found, stored: found.id)
        return found
    }

    func put(_ list: ListRow) throws(StoreError) {
        try check()
        // A template is stored at once, as it outlives the list.
        if lists.entries[list.job]?.stored != list.id { try storeTemplate(of: list) }
        lists.entries[list.job] = ListBuffer.Entry(row: list, isChanged: true, stored: list.id)
    }

    func closeList(of job: JobID) throws(StoreError) {
        try check()
        lists.entries[job, default: ListBuffer.Entry()].isChanged = true
        lists.entries[job]?.row = nil
    }

    func dropTemplates(of job: JobID, fromLink link: Int) throws(StoreError) {
        try statement("DELETE FROM templates WHERE job = ?1 AND link >= ?2", job, link).run()
        try statement("DELETE FROM blobs WHERE job = ?1 AND list_link >= ?2", job, link).run()
    }

    func flushLists() throws(StoreError) {
        for job in lists.entries.keys.sorted() {
            guard let entry = lists.entries[job], entry.isChanged else { continue }
            if let row = entry.row {
                try store(row)
            } else {
                try statement("DELETE FROM lists WHERE job = ?1", job).run()
            }
            lists.entries[job]?.isChanged = false
        }
    }

    private func storeTemplate(of list: ListRow) throws(StoreError) {
        guard let template = list.template else { return }
        try statement(
            "INSERT OR REPLACE INTO templates (job, list, link, template) VALUES (?1, ?2, ?3, ?4)", list.job, list.id,
            list.link, template.encoded
        ).run()
        if case .file(let blob) = template { try insertBlob(blob, of: list.job, listLink: list.link) }
    }

    private func store(_ list: ListRow) throws(StoreError) {
        try statement(
            """
            INSERT OR REPLACE INTO lists (\(Self.columns)) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
            """, list.job, list.id, list.link, list.phase.rawValue, list.mode.rawValue, list.concurrency, list.total,
            list.made, list.ended, list.failed, list.decided, list.admitted, list.bytes, list.template != nil
        ).run()
    }
}

extension ListRow {
    /// The list in the present row.
    fileprivate init(_ row: PreparedStatement) throws(DamagedRow) {
        guard let phase = Phase(rawValue: Int(row.integer(3))), let mode = row.text(4).flatMap(ListMode.init(rawValue:))
        else { throw DamagedRow() }
        self.init(
            job: row.integer(0), id: row.integer(1), link: try row.count(2), phase: phase, mode: mode,
            concurrency: row.optionalInteger(5).map(Int.init), total: try row.count(6),
            template: try row.integer(13) != 0 ? row.value(14) : nil)
        made = try row.count(7)
        ended = try row.count(8)
        failed = try row.count(9)
        decided = row.optionalInteger(10).map(Int.init)
        admitted = try row.count(11)
        bytes = row.integer(12)
    }
}
