import JobModel

extension Writer {
    /// A job, if it is there, and all below it, each behind those it is below of.
    func tree(of job: JobID) throws -> [RemovedJob] {
        try removals(
            """
            WITH RECURSIVE tree (id) AS (
                SELECT id FROM jobs WHERE id = ?1
                UNION ALL SELECT jobs.id FROM tree JOIN jobs ON jobs.parent = tree.id
            ) \(Self.removal)
            """, job)
    }

    /// The children that a link and later ones made, and all below them, each behind those it is below of.
    func trees(fromLink link: Int, of parent: JobID) throws -> [RemovedJob] {
        try removals(
            """
            WITH RECURSIVE tree (id) AS (
                SELECT id FROM jobs WHERE parent = ?1 AND parent_link >= ?2
                UNION ALL SELECT jobs.id FROM tree JOIN jobs ON jobs.parent = tree.id
            ) \(Self.removal)
            """, parent, Int64(link))
    }

    /// The finished root jobs of an owner up to `end` in the order of their ends, at most `limit`, earliest first.
    func finished(upTo end: FinishedEnd, atMost limit: Int) throws -> [JobID] {
        let statement = try statement(
            """
            SELECT id, finished_at FROM jobs WHERE \(Reader.finished) AND owner = ?1 AND finished_at <= ?2 \
            ORDER BY finished_at, id LIMIT ?3
            """)
        statement.bind(end.owner, at: 1)
        statement.bind(end.last.finishedAt, at: 2)
        statement.bind(limit, at: 3)
        return try statement.rows { row in
            let isBehind = row.integer(1) == end.last.finishedAt.milliseconds && row.integer(0) > end.last.id
            return isBehind ? nil : row.integer(0)
        }
    }

    private static let removal = """
        SELECT id, owner, queue, state, link, size, \
        (SELECT json_group_array(note) FROM notes WHERE job = id), parent, \
        (SELECT json_group_array(tag) FROM tags WHERE job = id) FROM tree CROSS JOIN jobs USING (id)
        """

    /// The texts of an array of JSON.
    private static func texts(_ array: UnsafeRawBufferPointer) -> [String] {
        (try? JSONParser.parse(array))?.array?.compactMap(\.string) ?? []
    }

    private func removals(_ sql: String, _ arguments: Int64...) throws -> [RemovedJob] {
        let statement = try statement(sql)
        for (index, argument) in arguments.enumerated() { statement.bind(argument, at: Int32(index) + 1) }
        return try statement.rows { row in
            // One that makes no sense can be removed all the same; it was counted nowhere. A checkpoint that makes none is left out.
            RemovedJob(
                id: row.integer(0), owner: UInt32(truncatingIfNeeded: row.integer(1)), queue: row.text(2) ?? "",
                state: JobState(code: row.integer(3)) ?? .failed, links: Int(row.integer(4)),
                size: row.integer(5),
                checkpoints: (row.utf8(6, Self.texts) ?? []).compactMap { try? JSON(parsing: $0) },
                parent: row.optionalInteger(7), tags: row.utf8(8, Self.texts) ?? [])
        }
    }

    func remove(_ jobs: some Collection<JobID>) throws {
        let deletions = try [
            "DELETE FROM jobs WHERE id = ?1", "DELETE FROM tags WHERE job = ?1", "DELETE FROM notes WHERE job = ?1",
            "DELETE FROM large_specs WHERE job = ?1", "DELETE FROM templates WHERE parent = ?1",
        ].map(statement)
        for job in jobs {
            for deletion in deletions {
                deletion.bind(job, at: 1)
                try deletion.run()
            }
            try removeLongOutcome(of: job)
            count()
        }
        mayHaveFreePages = true
        // The highest number may be among them, and must not be given out again.
        let statement = try statement("UPDATE state SET value = ?1 WHERE name = 'last_job' AND value < ?1")
        statement.bind(lastJob.present, at: 1)
        try statement.run()
    }

    /// Removes the templates of children that are gone.
    func removeTemplates(of parent: JobID, fromLink link: Int) throws {
        let statement = try statement("DELETE FROM templates WHERE parent = ?1 AND link >= ?2")
        statement.bind(parent, at: 1)
        statement.bind(link, at: 2)
        try statement.run()
    }

    /// Lets go of a job's key ahead of its removal.
    func freeKey(of job: JobID) throws {
        let statement = try statement("UPDATE jobs SET key = NULL WHERE id = ?1 AND key IS NOT NULL")
        statement.bind(job, at: 1)
        try statement.run()
    }
}
