package import JobModel

/// Reads for clients and runs, each call in one snapshot on one of a few connections.
package final class SQLiteJobReader: JobReader {
    let pool: ReadingPool
    let directory: StateDirectory
    let damage: DamageReport

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

    package func job(_ id: JobID) throws(StoreError) -> StoredJob? {
        try read { snapshot throws(StoreError) in try snapshot.job(id)?.job }
    }

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

    package func outcomes(
        of job: JobID, list: Int64, from index: Int, limit: Int
    ) throws(StoreError) -> [ChildOutcome] {
        try read { snapshot throws(StoreError) in
            let select = try snapshot.connection.statement(
                """
                SELECT id, parent_index, state, carried FROM jobs INDEXED BY jobs_by_parent \
                WHERE parent = ?1 AND list = ?2 AND parent_index >= ?3 ORDER BY parent_index
                """, job, list, index)
            return try select.rows(atMost: limit) { row throws(StoreError) in
                damage.legible(.job(row.integer(0))) { () throws(DamagedRow) in
                    ChildOutcome(
                        job: row.integer(0), index: Int(row.integer(1)), state: try row.state(2),
                        carried: try row.carried(3))
                }
            }
        }
    }
}
