package import JobModel

extension JobState {
    /// Its number in the database, which never changes.
    package var code: Int64 {
        switch self {
        case .scheduled: 0
        case .queued: 1
        case .running: 2
        case .held: 3
        case .succeeded: 4
        case .failed: 5
        case .cancelled: 6
        }
    }

    /// The state of this number; nil if there is none.
    package init?(code: Int64) {
        guard let state = Self.allCases.first(where: { $0.code == code }) else { return nil }
        self = state
    }
}

extension QueueOverrides {
    static let columns =
        "name, concurrency, per_user, is_suspended, start_count, start_milliseconds, byte_rate"

    /// The values of ``columns`` behind the name.
    var values: [(any Bindable)?] {
        [
            concurrency, perUser, isSuspended, startRate?.count,
            startRate.map { Int64(($0.seconds * 1000).rounded()) }, byteRate,
        ]
    }

    /// The settings in the present row of a statement that selects ``columns``.
    init(_ row: some StoredColumns) {
        func number(_ column: Int32) -> Int? { row.optionalInteger(column).map(Int.init) }
        self.init()
        concurrency = number(1)
        perUser = number(2)
        isSuspended = number(3).map { $0 != 0 }
        if let count = number(4), let milliseconds = number(5) {
            startRate = StartRate(count: count, seconds: Double(milliseconds) / 1000)
        }
        byteRate = number(6)
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

extension UnfinishedTransfer {
    /// The transfer in the present row of a statement that selects its job, owner, link and checkpoint; nil if no transfer
    /// can continue with that.
    package init?(_ row: some StoredColumns) {
        let checkpoint = row.withBytes(3) { try? JSONParser.parse($0).value }
        guard let owner = UInt32(exactly: row.integer(1)), let checkpoint else { return nil }
        self.init(job: row.integer(0), owner: owner, link: Int(row.integer(2)), checkpoint: checkpoint)
    }
}

extension JobStanding {
    /// The standing in the present row of a statement that selects owner, state and version.
    package init(_ row: some StoredColumns) throws(DamagedRow) {
        self.init(owner: try row.owner(0), state: try row.state(1), version: row.integer(2))
    }
}

extension StoredJob {
    /// The job in the present row of a statement that selects ``JobColumns/selected``, its document and its template.
    package init(_ row: some StoredColumns) throws(DamagedRow) {
        self.init(
            row: try JobColumns.row(row), document: try NewJobRow.Document(row, from: JobColumns.selectedCount),
            template: try row.value(JobColumns.selectedCount + 2))
    }

    /// The bytes of its texts in that row.
    package static func size(_ row: some StoredColumns) -> Int {
        JobColumns.size(row) + row.size(JobColumns.selectedCount + 1) + row.size(JobColumns.selectedCount + 2)
    }
}
