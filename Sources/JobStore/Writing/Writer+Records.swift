import JobModel

/// What is kept beside the jobs: checkpoints of transfers, downloads, settings of queues.
extension Writer {
    /// How many downloads are remembered.
    private static let largestDownloadCount = 100_000
    /// Bytes of one of them: servers say how long its validators are.
    private static let largestDownload = 4 << 10

    func save(checkpoint: JSON?, of job: JobID, link: Int) throws {
        guard let text = checkpoint?.utf8 else {
            let statement = try statement("DELETE FROM notes WHERE job = ?1 AND link = ?2")
            statement.bind(job, at: 1)
            statement.bind(link, at: 2)
            try statement.run()
            return count()
        }
        let statement = try statement(
            """
            INSERT INTO notes (job, link, note) SELECT ?1, ?2, ?3 FROM jobs WHERE id = ?1 AND (state < 3 OR state = 4) \
            ON CONFLICT (job, link) DO UPDATE SET note = excluded.note
            """)
        statement.bind(job, at: 1)
        statement.bind(link, at: 2)
        statement.bind(utf8: text, at: 3)
        try statement.run()
        count(bytes: text.count)
    }

    func save(download: JSON, to path: String) throws {
        var stored = try downloadCount.present ?? countDownloads()
        let drop = try statement("DELETE FROM downloads WHERE path = ?1")
        drop.bind(path, at: 1)
        if try drop.run() { stored -= 1 }
        let text = download.utf8
        guard text.count <= Self.largestDownload else {
            downloadCount.present = stored
            return count()
        }
        let insert = try statement("INSERT INTO downloads (path, record) VALUES (?1, ?2)")
        insert.bind(path, at: 1)
        insert.bind(utf8: text, at: 2)
        try insert.run()
        stored += 1
        while stored > Self.largestDownloadCount {
            try statement("DELETE FROM downloads WHERE number = (SELECT min(number) FROM downloads)").run()
            stored -= 1
        }
        downloadCount.present = stored
        count(bytes: text.count)
    }

    private func countDownloads() throws -> Int {
        try statement("SELECT count(*) FROM downloads").row { Int($0.integer(0)) } ?? 0
    }

    func save(_ queue: QueueSettings) throws {
        let statement = try statement(
            """
            INSERT INTO queues (name, concurrency, is_suspended, per_user) VALUES (?1, ?2, ?3, ?4) \
            ON CONFLICT (name) DO UPDATE SET concurrency = excluded.concurrency, \
            is_suspended = excluded.is_suspended, per_user = excluded.per_user
            """)
        statement.bind(queue.name, at: 1)
        statement.bind(queue.concurrency, at: 2)
        statement.bind(queue.isSuspended ? 1 : 0, at: 3)
        if let perUser = queue.perUser { statement.bind(perUser, at: 4) }
        try statement.run()
        count()
    }

    func probe() throws {
        try statement("UPDATE state SET value = value + 1 WHERE name = 'probes'").run()
        try checkRoom()
        count()
    }
}
