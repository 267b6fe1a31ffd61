package import JobModel

/// Reads for clients and runs, each call in one snapshot on one of a few connections.
package final class SQLiteJobReader: SQLReader {
    let pool: ReadingPool
    let directory: StateDirectory
    package let damage: DamageReport

    init(_ pool: ReadingPool, _ damage: DamageReport, _ directory: StateDirectory) {
        self.pool = pool
        self.damage = damage
        self.directory = directory
    }

    func read<Value>(_ body: (inout Snapshot) throws(StoreError) -> Value) throws(StoreError) -> Value {
        do throws(StoreError) {
            return try pool.read { connection throws(StoreError) in
                var snapshot = Snapshot(connection, damage)
                return try body(&snapshot)
            }
        } catch {
            if error.code == .damaged { damage.tell(error) }
            throw error
        }
    }

    package func job(_ id: JobID) throws(StoreError) -> StoredJob? { try jobs([id]).first }

    package func jobs(_ ids: [JobID]) throws(StoreError) -> [StoredJob] {
        try read { snapshot throws(StoreError) in
            var page = SnapshotPage(limit: ids.count)
            try snapshot.add(ids, to: &page)
            return page.jobs
        }
    }

    package func standings(of ids: [JobID]) throws(StoreError) -> [JobID: JobStanding] {
        try read { snapshot throws(StoreError) in
            var standings: [JobID: JobStanding] = [:]
            for id in ids { standings[id] = try snapshot.standing(of: id) }
            return standings
        }
    }

    package func page(_ filter: JobFilter) throws(StoreError) -> (jobs: [StoredJob], endsEarly: Bool) {
        var page = SnapshotPage(limit: filter.limit)
        var filter = filter
        // Each snapshot tests a bounded number of jobs, however few of them fit.
        while page.mayGrow {
            let end = try read { snapshot throws(StoreError) -> JobID? in
                let (ids, end) = try snapshot.ids(filter, atMost: page.left)
                try snapshot.add(ids, to: &page)
                return end
            }
            guard let end else { break }
            filter.after = end
        }
        return (page.jobs, page.isFull)
    }

    package func ids(_ filter: JobFilter) throws(StoreError) -> [JobID] {
        var (ids, filter): ([JobID], JobFilter) = ([], filter)
        while ids.count < filter.limit {
            let left = filter.limit - ids.count
            let (found, end) = try read { snapshot throws(StoreError) in try snapshot.ids(filter, atMost: left) }
            ids += found
            guard let end else { break }
            filter.after = end
        }
        return ids
    }

    /// Leaves out damaged checkpoints, with which no transfer can continue.
    package func unfinishedTransfers(limit: Int) throws(StoreError) -> [UnfinishedTransfer] {
        try read { snapshot throws(StoreError) in
            let select = try snapshot.connection.statement(
                """
                SELECT checkpoints.job, jobs.owner, checkpoints.link, checkpoints.text, jobs.parent FROM checkpoints \
                CROSS JOIN jobs ON jobs.id = checkpoints.job \
                WHERE state < 4 AND removing = 0 AND jobs.link = checkpoints.link ORDER BY checkpoints.job
                """)
            return try select.rows(atMost: limit) { row throws(StoreError) in
                if let parent = row.optionalInteger(4), try snapshot.isHidden(parent) { return nil }
                return UnfinishedTransfer(row)
            }
        }
    }

    package func rows<Value>(
        _ sql: String, _ values: [(any Bindable)?], atMost limit: Int,
        _ read: (PreparedStatement) throws(StoreError) -> Value?
    ) throws(StoreError) -> [Value] {
        try self.read { snapshot throws(StoreError) in
            try snapshot.connection.statement(sql, values).rows(atMost: limit, read)
        }
    }

    package func name(_ text: String) -> any Bindable { text }
}
