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

    private static let queueColumns =
        "name, concurrency, per_user, is_suspended, start_count, start_milliseconds, byte_rate"

    func queues() throws(StoreError) -> [String: QueueOverrides] {
        let rows = try statement("SELECT \(Self.queueColumns) FROM queues").rows {
            row throws(StoreError) -> (String, QueueOverrides) in
            func number(_ column: Int32) -> Int? { row.optionalInteger(column).map(Int.init) }
            var overrides = QueueOverrides()
            overrides.concurrency = number(1)
            overrides.perUser = number(2)
            overrides.isSuspended = number(3).map { $0 != 0 }
            if let count = number(4), let milliseconds = number(5) {
                overrides.startRate = StartRate(count: count, seconds: Double(milliseconds) / 1000)
            }
            overrides.byteRate = number(6)
            return (row.text(0) ?? "", overrides)
        }
        return Dictionary(rows) { $1 }
    }

    func put(_ overrides: QueueOverrides?, ofQueue name: String) throws(StoreError) {
        guard let overrides else {
            try statement("DELETE FROM queues WHERE name = ?1", name).run()
            return
        }
        let rate = overrides.startRate
        try statement(
            "INSERT OR REPLACE INTO queues (\(Self.queueColumns)) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            name, overrides.concurrency, overrides.perUser, overrides.isSuspended, rate?.count,
            rate.map { Int64(($0.seconds * 1000).rounded()) }, overrides.byteRate
        ).run()
    }

    func counts() throws(StoreError) -> [CountKey: CountValue] {
        let counts = try statement("SELECT owner, queue, state, jobs, bytes FROM counts").rows {
            row throws(StoreError) in
            damage.legible(.other("A count of jobs")) { () throws(DamagedRow) -> (CountKey, CountValue) in
                let key = CountKey(owner: try row.owner(0), queue: row.text(1) ?? "", state: try row.state(2))
                // Sums of the numbers in a damaged file must not overflow.
                guard (0...1 << 56).contains(row.integer(4)) else { throw DamagedRow() }
                return (key, CountValue(jobs: try row.count(3), bytes: row.integer(4)))
            }
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

    private static let selectWork = "SELECT id, kind, job, owner, list, position, payload FROM work"

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

    private func work(_ row: PreparedStatement) throws(StoreError) -> WorkRow? {
        damage.legible(.other("The piece of work \(row.integer(0))")) { () throws(DamagedRow) in
            guard let kind = WorkRow.Kind(rawValue: Int(row.integer(1))) else { throw DamagedRow() }
            return WorkRow(
                id: row.integer(0), kind: kind, job: row.integer(2), owner: try row.owner(3), list: row.integer(4),
                position: row.integer(5), payload: row.bytes(6) ?? [])
        }
    }
}
