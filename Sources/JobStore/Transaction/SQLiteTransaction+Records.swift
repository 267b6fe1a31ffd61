import JobModel

/// Checkpoints of transfers, downloads, settings of queues, counts, and unfinished work.
extension SQLiteTransaction {
    func save(checkpoint: [UInt8]?, of job: JobID, link: Int) throws(StoreError) {
        guard let checkpoint else {
            try statement("DELETE FROM checkpoints WHERE job = ?1 AND link = ?2", job, link).run()
            return
        }
        try statement(
            "INSERT OR REPLACE INTO checkpoints (job, link, text) VALUES (?1, ?2, ?3)", job, link, checkpoint
        ).run()
    }

    func checkpoints(of job: JobID, fromLink link: Int) throws(StoreError) -> [(link: Int, text: [UInt8])] {
        // A job that was deleted in this round has no checkpoints.
        try flushJobs()
        let select = try statement(
            "SELECT link, text FROM checkpoints WHERE job = ?1 AND link >= ?2 ORDER BY link", job, link)
        return try select.rows { row throws(StoreError) in (Int(row.integer(0)), row.bytes(1) ?? []) }
    }

    private static let mostDownloads = 100_000

    func save(download: [UInt8], to path: String) throws(StoreError) {
        // The new row gets the highest number.
        try statement("INSERT OR REPLACE INTO downloads (path, record) VALUES (?1, ?2)", path, download).run()
        try statement(
            "DELETE FROM downloads WHERE number <= (SELECT max(number) FROM downloads) - \(Self.mostDownloads)"
        ).run()
    }

    func queues() throws(StoreError) -> [String: QueueOverrides] {
        let rows = try statement("SELECT \(QueueOverrides.columns) FROM queues").rows { row throws(StoreError) in
            (row.text(0) ?? "", QueueOverrides(row))
        }
        return Dictionary(rows) { $1 }
    }

    func put(_ overrides: QueueOverrides?, ofQueue name: String) throws(StoreError) {
        guard let overrides else {
            try statement("DELETE FROM queues WHERE name = ?1", name).run()
            return
        }
        try statement(
            "INSERT OR REPLACE INTO queues (\(QueueOverrides.columns)) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            [name] + overrides.values
        ).run()
    }

    func counts() throws(StoreError) -> [CountKey: CountValue] {
        let counts = try statement("SELECT owner, queue, state, jobs, bytes FROM counts").rows {
            row throws(StoreError) in
            damage.legible(.other("A count of jobs")) { () throws(DamagedRow) in try CountKey.count(row) }
        }
        return Dictionary(counts) { $1 }
    }

    func put(_ counts: [CountKey: CountValue]) throws(StoreError) {
        for (key, value) in counts {
            if value.jobs == 0 {
                try statement(
                    "DELETE FROM counts WHERE owner = ?1 AND queue = ?2 AND state = ?3", key.owner, key.queue,
                    key.state.code
                ).run()
            } else {
                try statement(
                    "INSERT OR REPLACE INTO counts (owner, queue, state, jobs, bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
                    key.owner, key.queue, key.state.code, value.jobs, value.bytes
                ).run()
            }
        }
    }

    private static let selectWork = "SELECT \(WorkRow.columns) FROM work"

    func work(after: Int64, limit: Int) throws(StoreError) -> [WorkRow] {
        try statement("\(Self.selectWork) WHERE id > ?1 ORDER BY id", after).rows(atMost: limit, work)
    }

    func nextWork(ofOwnerAbove owner: UInt32?) throws(StoreError) -> WorkRow? {
        let select = try statement(
            """
            \(Self.selectWork) INDEXED BY work_by_owner \
            WHERE kind != \(WorkRow.Kind.removeParts.rawValue) AND owner > ?1 ORDER BY owner, id
            """, owner.map(Int64.init) ?? -1)
        return try select.rows(atMost: 1, work).first
    }

    func hasWork(_ kind: WorkRow.Kind, of job: JobID) throws(StoreError) -> Bool {
        try statement("SELECT 1 FROM work WHERE job = ?1 AND kind = ?2 LIMIT 1", job, kind.rawValue).number() != nil
    }

    func add(_ work: WorkRow) throws(StoreError) -> Int64 {
        try statement(
            "INSERT INTO work (kind, job, owner, list, position, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING id",
            work.kind.rawValue, work.job, work.owner, work.list, work.position, work.payload
        ).number() ?? 0
    }

    func update(_ work: WorkRow) throws(StoreError) {
        try statement("UPDATE work SET position = ?2 WHERE id = ?1", work.id, work.position).run()
    }

    func endWork(_ id: Int64) throws(StoreError) { try statement("DELETE FROM work WHERE id = ?1", id).run() }

    private func work(_ row: PreparedStatement) -> WorkRow? {
        damage.legible(.other("The piece of work \(row.integer(0))")) { () throws(DamagedRow) in try WorkRow(row) }
    }
}
