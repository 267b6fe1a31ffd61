/// A job to insert: its row, and data that is written once and never read by the core.
package struct NewJobRow: Sendable {
    /// The stored form of a job's spec.
    package enum Document: Sendable, Hashable {
        /// The JSON text of the spec.
        case spec([UInt8])
        /// The JSON text of a child's item, for its list's template.
        case item(StoredValue)

        /// The stored size, in bytes.
        package var size: Int64 {
            switch self {
            case .spec(let text): Int64(text.count)
            case .item(let value): value.size
            }
        }
    }

    package var row: JobRow
    package let document: Document
    /// A digest that distinguishes specs with the same key; 0 without a key.
    package let digest: UInt64

    package init(row: JobRow, document: Document, digest: UInt64 = 0) {
        self.row = row
        self.document = document
        self.digest = digest
    }
}

/// The job that holds a key, and the digest of its spec.
package typealias KeyHolder = (job: JobID, digest: UInt64)

/// A ready job in a window of the scheduler.
package struct ReadyRow: Sendable, Hashable {
    package let position: ReadyPosition
    package let host: String?

    package init(position: ReadyPosition, host: String?) {
        self.position = position
        self.host = host
    }
}

/// The next times that rows wait for, or nil.
package struct DueTimes: Sendable, Hashable {
    /// On the steady clock: delays, retries, timers, timeouts of lists, deadlines.
    package var steady: SteadyTime?
    /// On the wall clock: `notBefore` of jobs.
    package var wall: Timestamp?
    /// On the wall clock: times of schedules.
    package var schedules: Timestamp?
    /// The earliest end of a finished root job without dependents.
    package var firstEnd: Timestamp?

    package init(
        steady: SteadyTime? = nil, wall: Timestamp? = nil, schedules: Timestamp? = nil, firstEnd: Timestamp? = nil
    ) {
        (self.steady, self.wall, self.schedules, self.firstEnd) = (steady, wall, schedules, firstEnd)
    }
}

/// The key of a row that handling an input will read.
package enum RowKey: Sendable, Hashable {
    case job(JobID)
    case key(owner: UInt32, String)
    case schedule(ScheduleKey)
}

/// The owner, queue and state that a count is for.
package struct CountKey: Sendable, Hashable {
    package let owner: UInt32
    package let queue: String
    package let state: JobState

    package init(owner: UInt32, queue: String, state: JobState) {
        self.owner = owner
        self.queue = queue
        self.state = state
    }
}

/// A number of jobs and their size on disk.
package struct CountValue: Sendable, Hashable {
    package var jobs: Int
    package var bytes: Int64

    package init(jobs: Int = 0, bytes: Int64 = 0) {
        self.jobs = jobs
        self.bytes = bytes
    }
}
