package import JobModel

extension JobState {
    /// In the order of their numbers in the database, which never change.
    private static let byCode: [JobState] = [.scheduled, .queued, .running, .held, .succeeded, .failed, .cancelled]

    package var code: Int64 { Int64(Self.byCode.firstIndex(of: self) ?? 0) }

    /// The state of this number; nil if there is none.
    package init?(code: Int64) {
        guard let index = Int(exactly: code), Self.byCode.indices.contains(index) else { return nil }
        self = Self.byCode[index]
    }
}

extension QueueOverrides {
    /// Settings that pass through a coder.
    init(_ passed: QueueOverrides?, by coder: inout ByteCoder) throws(DamagedRow) {
        self.init()
        concurrency = try coder.has(passed?.concurrency) ? coder.count(passed?.concurrency) : nil
        perUser = try coder.has(passed?.perUser) ? coder.count(passed?.perUser) : nil
        isSuspended = try coder.has(passed?.isSuspended) ? coder.flag(passed?.isSuspended) : nil
        if try coder.has(passed?.startRate) {
            let rate = passed?.startRate
            let (count, seconds) = (try coder.count(rate?.count), try coder.real(rate?.seconds))
            guard 1...StartRate.most ~= count && 0...86_400 ~= seconds || !coder.isReading else { throw DamagedRow() }
            startRate = StartRate(count: count, seconds: seconds)
        }
        byteRate = try coder.byteRate(passed?.byteRate)
    }
}

extension CountKey {
    /// The count in the present row of a statement that selects owner, queue, state, jobs and bytes.
    package static func count(_ row: some StoredColumns) throws(DamagedRow) -> (CountKey, CountValue) {
        let key = CountKey(owner: try row.owner(0), queue: row.text(1) ?? "", state: try row.state(2))
        // Sums of the numbers in a damaged file must not overflow.
        guard (0...1 << 56).contains(row.integer(4)) else { throw DamagedRow() }
        return (key, CountValue(jobs: try row.count(3), bytes: row.integer(4)))
    }
}

extension WorkRow {
    static let columns = "id, kind, job, owner, list, position, payload"

    /// The piece of work in the present row of a statement that selects ``columns``.
    init(_ row: some StoredColumns) throws(DamagedRow) {
        guard let kind = Kind(rawValue: Int(row.integer(1))) else { throw DamagedRow() }
        self.init(
            id: row.integer(0), kind: kind, job: row.integer(2), owner: try row.owner(3), list: row.integer(4),
            position: row.integer(5), payload: row.bytes(6) ?? [])
    }
}

extension BlobReference {
    /// The file in the present row of a statement that selects its life, number and size.
    package init(_ row: some StoredColumns) {
        self.init(life: row.integer(0), number: row.integer(1), size: row.integer(2))
    }
}

extension StoredJob {
    /// The job in the present row of a statement that selects ``JobColumns/selected``, its document and its template.
    package init(_ row: some StoredColumns) throws(DamagedRow) {
        self.init(
            row: try JobColumns.row(row), document: try NewJobRow.Document(row, at: JobColumns.selectedCount),
            template: try row.value(JobColumns.selectedCount + 1))
    }
}
