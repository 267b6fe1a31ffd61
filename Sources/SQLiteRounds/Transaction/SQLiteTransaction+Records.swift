import JobModel

/// What is kept beside the jobs: checkpoints of transfers, downloads, settings of queues, counts, and work left over.
extension SQLiteTransaction {
    // MARK: Checkpoints

    func save(checkpoint: [UInt8]?, of job: JobID, link: Int) throws(StoreError) {
        try check()
        let save = try statement(
            checkpoint == nil
                ? "DELETE FROM checkpoints WHERE job = ?1 AND link = ?2"
                : "INSERT OR REPLACE INTO checkpoints (job, link, text) VALUES (?1, ?2, ?3)")
        save.bind(job, at: 1)
        save.bind(link, at: 2)
        save.bind(bytes: checkpoint, at: 3)
        try save.run()
    }

    func checkpoints(of job: JobID, fromLink link: Int) throws(StoreError) -> [(link: Int, text: [UInt8])] {
        try check()
        // A job that was deleted in this round has none.
        try flushJobs()
        let select = try statement("SELECT link, text FROM checkpoints WHERE job = ?1 AND link >= ?2 ORDER BY link")
        select.bind(job, at: 1)
        select.bind(link, at: 2)
        return try select.rows { row throws(StoreError) in (Int(row.integer(0)), row.bytes(1) ?? []) }
    }

    // MARK: Downloads

    private static let mostDownloads = 100_000

    func save(download: [UInt8], to path: String) throws(StoreError) {
        try check()
        var count = 0
        if let known = downloadCount {
            count = known
        } else {
            count = Int(try connection.number("SELECT count(*) FROM downloads"))
        }
        let drop = try statement("DELETE FROM downloads WHERE path = ?1")
        drop.bind(path, at: 1)
        if try drop.run() { count -= 1 }
        // Its number is one above the last one's, so the lowest one is the oldest.
        let insert = try statement("INSERT INTO downloads (path, record) VALUES (?1, ?2)")
        insert.bind(path, at: 1)
        insert.bind(bytes: download, at: 2)
        try insert.run()
        count += 1
        while count > Self.mostDownloads {
            try statement("DELETE FROM downloads WHERE number = (SELECT min(number) FROM downloads)").run()
            count -= 1
        }
        downloadCount = count
    }

    // MARK: Queues

    func queues() throws(StoreError) -> [QueueSettings] {
        try check()
        return try statement("SELECT name, concurrency, per_user, is_suspended FROM queues ORDER BY name").rows {
            row throws(StoreError) in
            QueueSettings(
                name: row.text(0) ?? "", concurrency: Int(row.integer(1)),
                perUser: row.optionalInteger(2).map(Int.init), isSuspended: row.integer(3) != 0)
        }
    }

    func put(_ queue: QueueSettings) throws(StoreError) {
        try check()
        let insert = try statement(
            "INSERT OR REPLACE INTO queues (name, concurrency, per_user, is_suspended) VALUES (?1, ?2, ?3, ?4)")
        insert.bind(queue.name, at: 1)
        insert.bind(queue.concurrency, at: 2)
        insert.bind(queue.perUser.map(Int64.init), at: 3)
        insert.bind(queue.isSuspended ? 1 : 0, at: 4)
        try insert.run()
    }

    // MARK: Counts

    func counts() throws(StoreError) -> [CountKey: CountValue] {
        try check()
        try flushCounts()
        let counts = try statement("SELECT owner, queue, state, jobs, bytes FROM counts").rows {
            row throws(StoreError) -> (CountKey, CountValue)? in
            guard let owner = UInt32(exactly: row.integer(0)), let state = JobState(code: row.integer(2)),
                // Sums of what a damaged file says must not overflow.
                (0...Int64(Int32.max)).contains(row.integer(3)), (0...1 << 56).contains(row.integer(4))
            else {
                damage.tell(of: "A count of jobs")
                return nil
            }
            return (
                CountKey(owner: owner, queue: row.text(1) ?? "", state: state),
                CountValue(jobs: Int(row.integer(3)), bytes: row.integer(4))
            )
        }
        return Dictionary(counts) { $1 }
    }

    func put(_ counts: [CountKey: CountValue]) throws(StoreError) {
        try check()
        changedCounts.merge(counts) { $1 }
    }

    func flushCounts() throws(StoreError) {
        let sorted = changedCounts.sorted {
            ($0.key.owner, $0.key.queue, $0.key.state.code) < ($1.key.owner, $1.key.queue, $1.key.state.code)
        }
        for (key, value) in sorted {
            let change = try statement(
                value.jobs == 0
                    ? "DELETE FROM counts WHERE owner = ?1 AND queue = ?2 AND state = ?3"
                    : "INSERT OR REPLACE INTO counts (owner, queue, state, jobs, bytes) VALUES (?1, ?2, ?3, ?4, ?5)")
            change.bind(Int64(key.owner), at: 1)
            change.bind(key.queue, at: 2)
            change.bind(key.state.code, at: 3)
            if value.jobs != 0 {
                change.bind(value.jobs, at: 4)
                change.bind(value.bytes, at: 5)
            }
            try change.run()
        }
        changedCounts.removeAll(keepingCapacity: true)
    }

    // MARK: Work

    private static let workColumns = "id, kind, job, owner, list, position, payload"

    func work(after: Int64, limit: Int) throws(StoreError) -> [WorkRow] {
        try check()
        let select = try statement("SELECT \(Self.workColumns) FROM work WHERE id > ?1 ORDER BY id")
        select.bind(after, at: 1)
        return try select.rows(atMost: limit, work)
    }

    func nextWork(ofOwnerAbove owner: UInt32?) throws(StoreError) -> WorkRow? {
        try check()
        let select = try statement(
            """
            SELECT \(Self.workColumns) FROM work INDEXED BY work_by_owner \
            WHERE kind != \(WorkRow.Kind.removeParts.rawValue) AND owner > ?1 ORDER BY owner, id
            """)
        select.bind(owner.map(Int64.init) ?? -1, at: 1)
        return try select.rows(atMost: 1, work).first
    }

    func hasWork(_ kind: WorkRow.Kind, of job: JobID) throws(StoreError) -> Bool {
        try check()
        let select = try statement("SELECT 1 FROM work WHERE job = ?1 AND kind = ?2 LIMIT 1")
        select.bind(job, at: 1)
        select.bind(kind.rawValue, at: 2)
        return try select.row { row throws(StoreError) in row.integer(0) } != nil
    }

    func add(_ work: WorkRow) throws(StoreError) -> Int64 {
        try check()
        let insert = try statement(
            "INSERT INTO work (kind, job, owner, list, position, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING id")
        insert.bind(work.kind.rawValue, at: 1)
        insert.bind(work.job, at: 2)
        insert.bind(Int64(work.owner), at: 3)
        insert.bind(work.list, at: 4)
        insert.bind(work.position, at: 5)
        insert.bind(bytes: work.payload, at: 6)
        return try insert.row { row throws(StoreError) in row.integer(0) } ?? 0
    }

    func update(_ work: WorkRow) throws(StoreError) {
        try check()
        let update = try statement("UPDATE work SET position = ?2 WHERE id = ?1")
        update.bind(work.id, at: 1)
        update.bind(work.position, at: 2)
        try update.run()
    }

    func endWork(_ id: Int64) throws(StoreError) {
        try check()
        let delete = try statement("DELETE FROM work WHERE id = ?1")
        delete.bind(id, at: 1)
        try delete.run()
    }

    private func work(_ row: PreparedStatement) throws(StoreError) -> WorkRow? {
        guard let kind = WorkRow.Kind(rawValue: Int(row.integer(1))), let owner = UInt32(exactly: row.integer(3)) else {
            damage.tell(of: "The piece of work \(row.integer(0))")
            return nil
        }
        return WorkRow(
            id: row.integer(0), kind: kind, job: row.integer(2), owner: owner, list: row.integer(4),
            position: row.integer(5), payload: row.bytes(6) ?? [])
    }
}
