import JobModel

/// The transaction of one round.
final class InMemoryTransaction: JobTransaction {
    var tables: StoreTables
    private let faults: StoreFaults
    /// Calls until one fails; nil for no failure.
    private(set) var callsLeft: Int?
    private var failure: StoreError?
    var isOpen = true
    let nodes: Nodes
    let life: Int64
    let node: String?
    /// Whether no runs of lives that are over are left.
    var forgetsLost = false
    var hasAskedForNews = false

    init(_ tables: StoreTables, _ faults: StoreFaults, _ nodes: Nodes, life: Int64, node: String?) {
        self.tables = tables
        self.faults = faults
        self.nodes = nodes
        self.life = life
        self.node = node
        callsLeft = faults.callsLeft
    }

    /// Ends the round; throws if a call has failed.
    func end() throws(StoreError) {
        isOpen = false
        if let failure { throw failure }
    }

    /// Begins a call; throws if the round has failed or is over, or if this call must fail.
    func check() throws(StoreError) {
        guard isOpen else { throw StoreError(.closed, "The round is over; read and write within it.") }
        if let failure { throw failure }
        faults.onCall?()
        guard let left = callsLeft else { return }
        callsLeft = left - 1
        if left == 1 { throw fail(.read, "A read failed, as was asked for.") }
    }

    /// Returns an error and makes every later call fail.
    private func fail(_ code: StoreError.Code, _ message: String) -> StoreError {
        let error = StoreError(code, message)
        failure = error
        return error
    }

    // MARK: Reading rows

    /// Returns the row of a job; nil if it is missing or damaged.
    func row(_ id: JobID) throws(StoreError) -> JobRow? {
        if faults.unreadable.contains(id), tables.rows.jobs[id] != nil {
            throw fail(.read, "The row of job \(id) cannot be read, as was asked for.")
        }
        return isDamaged(id) ? nil : tables.rows.jobs[id]?.row
    }

    /// Whether a ready job is neither damaged nor bound to another node.
    func isReadyHere(_ id: JobID) throws(StoreError) -> Bool { try row(id)?.isReady(at: node) == true }

    func isDamaged(_ id: JobID) -> Bool { faults.damaged.contains(id) }

    /// Returns the first `limit` rows of these jobs, without damaged ones.
    func rows(_ ids: some Sequence<JobID>, limit: Int) throws(StoreError) -> [JobRow] {
        var found: [JobRow] = []
        guard limit > 0 else { return found }
        for id in ids {
            guard let row = try row(id) else { continue }
            found.append(row)
            if found.count == limit { break }
        }
        return found
    }

    // MARK: Jobs

    func load(_ keys: @autoclosure () -> [RowKey]) throws(StoreError) { try check() }

    func job(_ id: JobID) throws(StoreError) -> JobRow? {
        try check()
        return try row(id)
    }

    func document(of job: JobID) throws(StoreError) -> NewJobRow.Document? {
        try check()
        return tables.rows.jobs[job]?.document
    }

    func insert(_ new: NewJobRow) throws(StoreError) -> JobID {
        try check()
        if faults.isFull { throw fail(.write, "There is no room for new jobs, as was asked for.") }
        let key = new.row.key.map { OwnedKey(owner: new.row.owner, name: Name($0)) }
        var row = new.row
        tables.rows.numbers.job += 1
        row.id = tables.rows.numbers.job
        tables.setJob(row.id, JobEntry(row: row, document: new.document, digest: new.digest, key: key))
        return row.id
    }

    func update(_ job: JobRow) throws(StoreError) {
        try check()
        guard let entry = tables.rows.jobs[job.id], !isDamaged(job.id) else {
            throw fail(.write, "Job \(job.id) is to be changed, but is not there.")
        }
        tables.setJob(job.id, entry.with(job))
    }

    func replaceTerms(of job: JobRow, was old: JobRow) throws(StoreError) { try check() }

    func holder(ofKey key: String, owner: UInt32) throws(StoreError) -> KeyHolder? {
        try check()
        return tables.jobs.keys[OwnedKey(owner: owner, name: Name(key))].map {
            ($0, tables.rows.jobs[$0]?.digest ?? 0)
        }
    }

    func delete(_ job: JobID) throws(StoreError) {
        try check()
        guard try row(job) != nil else { return }
        for key in parts(tables.rows.checkpoints, of: job, from: 0) { tables.rows.checkpoints.place(key, nil) }
        tables.setJob(job, nil)
    }

    func releaseKey(of job: JobID) throws(StoreError) {
        try check()
        guard let entry = tables.rows.jobs[job], entry.key != nil else { return }
        tables.setJob(job, entry.withoutKey)
    }

    // MARK: Checkpoints

    func save(checkpoint: [UInt8]?, of job: JobID, link: Int) throws(StoreError) {
        try check()
        tables.rows.checkpoints.place(JobPart(job: job, number: Int64(link)), checkpoint)
    }

    func checkpoints(of job: JobID, fromLink link: Int) throws(StoreError) -> [(link: Int, text: [UInt8])] {
        try check()
        return parts(tables.rows.checkpoints, of: job, from: Int64(link)).compactMap { key in
            tables.rows.checkpoints[key].map { (Int(key.number), $0) }
        }
    }

    func save(download: [UInt8], to path: String) throws(StoreError) {
        try check()
        tables.rows.downloads.place(Name(path), download)
    }

    // MARK: Lists

    func list(of job: JobID) throws(StoreError) -> ListRow? {
        try check()
        return tables.rows.openLists[job]
    }

    func put(_ list: ListRow) throws(StoreError) {
        try check()
        let key = JobPart(job: list.job, number: list.id)
        if let template = list.template, tables.rows.templates[key] == nil {
            tables.rows.templates.place(key, StoredRows.Template(link: list.link, value: template))
        }
        tables.rows.openLists.place(list.job, list)
    }

    func closeList(of job: JobID) throws(StoreError) {
        try check()
        tables.rows.openLists.place(job, nil)
    }

    func dropTemplates(of job: JobID, fromLink link: Int) throws(StoreError) {
        try check()
        for key in parts(tables.rows.templates, of: job, from: .min)
        where tables.rows.templates[key].map({ $0.link >= link }) ?? false {
            tables.rows.templates.place(key, nil)
        }
    }

    func nextNumber() throws(StoreError) -> Int64 {
        try check()
        tables.rows.numbers.list += 1
        return tables.rows.numbers.list
    }

    /// Returns the keys of a job's rows in a table from a number on.
    private func parts<Row>(_ table: SortedRows<JobPart, Row>, of job: JobID, from number: Int64) -> [JobPart] {
        table.rows(from: JobPart(job: job, number: number)).lazy.map(\.key).prefix { $0.job == job }.map(\.self)
    }
}
