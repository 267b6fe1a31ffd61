package import JobModel

/// Schedules, checkpoints of transfers, and files.
extension SQLiteJobReader {
    package func schedule(_ key: ScheduleKey) throws(StoreError) -> StoredScheduleRow? {
        try schedules("owner = ?1 AND name = ?2", [key.owner, key.name], atMost: 1, longestSpec: .max).first
    }

    package func schedules(
        after key: ScheduleKey?, owner: UInt32?, limit: Int
    ) throws(StoreError) -> [StoredScheduleRow] {
        let condition = "(owner, name) > (?1, ?2)\(owner == nil ? "" : " AND owner = ?3") ORDER BY owner, name"
        return try schedules(
            condition, [key?.owner ?? owner ?? 0, key?.name ?? "", owner], atMost: limit,
            longestSpec: StoredScheduleRow.longestShownSpec)
    }

    /// The schedules that fit a condition except damaged ones, without specs longer than `longestSpec`.
    private func schedules(
        _ condition: String, _ values: [(any Bindable)?], atMost limit: Int, longestSpec: Int
    ) throws(StoreError) -> [StoredScheduleRow] {
        try read { snapshot throws(StoreError) in
            try snapshot.connection.statement("\(ScheduleColumns.selectWhole) WHERE \(condition)", values)
                .rows(atMost: limit) { row throws(StoreError) in
                    damage.legible(.other(ScheduleColumns.name(row))) { () throws(DamagedRow) in
                        try ScheduleColumns.whole(row, longestSpec: longestSpec)
                    }
                }
        }
    }

    package func checkpoint(of job: JobID, link: Int) throws(StoreError) -> [UInt8]? {
        try bytes("SELECT text FROM checkpoints WHERE job = ?1 AND link = ?2", job, link)
    }

    package func download(to path: String) throws(StoreError) -> [UInt8]? {
        try bytes("SELECT record FROM downloads WHERE path = ?1", path)
    }

    private func bytes(_ sql: String, _ values: (any Bindable)?...) throws(StoreError) -> [UInt8]? {
        try read { snapshot throws(StoreError) in try snapshot.connection.statement(sql, values).bytes() }
    }

    /// Leaves out damaged checkpoints, with which no transfer can continue.
    package func unfinishedTransfers(of job: JobID?, limit: Int) throws(StoreError) -> [UnfinishedTransfer] {
        try read { snapshot throws(StoreError) in
            let select = try snapshot.connection.statement(
                """
                SELECT checkpoints.job, jobs.owner, checkpoints.link, checkpoints.text, jobs.parent FROM checkpoints \
                CROSS JOIN jobs ON jobs.id = checkpoints.job WHERE \(job == nil ? "" : "checkpoints.job = ?1 AND ")\
                state < 4 AND removing = 0 AND jobs.link = checkpoints.link ORDER BY checkpoints.job
                """, job)
            return try select.rows(atMost: limit) { row throws(StoreError) -> UnfinishedTransfer? in
                if let parent = row.optionalInteger(4), try snapshot.isHidden(parent) { return nil }
                let checkpoint = row.withBytes(3) { try? JSONParser.parse($0).value }
                guard let owner = UInt32(exactly: row.integer(1)), let checkpoint else { return nil }
                return UnfinishedTransfer(
                    job: row.integer(0), owner: owner, link: Int(row.integer(2)), checkpoint: checkpoint)
            }
        }
    }

    package func blobs(
        beforeLife life: Int64, after blob: BlobReference?, limit: Int
    ) throws(StoreError) -> [BlobReference] {
        try read { snapshot throws(StoreError) in
            let select = try snapshot.connection.statement(
                """
                SELECT DISTINCT life, number, size FROM blobs WHERE life < ?1 AND (life, number) > (?2, ?3) \
                ORDER BY life, number
                """, life, blob?.life ?? 0, blob?.number ?? 0)
            return try select.rows(atMost: limit, BlobReference.init)
        }
    }
}
