/// A job that is to be inserted: its row, and what is written once and never read by the core.
package struct NewJobRow: Sendable {
    /// How the spec of a job is stored.
    package enum Document: Sendable, Hashable {
        /// The JSON text of its spec.
        case spec([UInt8])
        /// A child that is made of its list's template: the JSON text of its item.
        case item(StoredValue)

        /// Bytes of what is stored.
        package var size: Int64 {
            switch self {
            case .spec(let text): Int64(text.count)
            case .item(let value): value.size
            }
        }
    }

    package var row: JobRow
    package let document: Document
    /// What tells its spec from others of the same key; 0 without a key.
    package let digest: UInt64

    package init(row: JobRow, document: Document, digest: UInt64 = 0) {
        self.row = row
        self.document = document
        self.digest = digest
    }
}

/// What became of a job that was inserted.
package enum Inserted: Sendable, Equatable {
    case created(JobID)
    /// Its key belongs to this job; `isSame` says whether that has the same spec. Nothing was stored.
    case taken(JobID, isSame: Bool)
}

/// A ready job, as a window of the scheduler has it.
package struct ReadyRow: Sendable, Hashable {
    package let position: ReadyPosition
    package let host: String?

    package init(position: ReadyPosition, host: String?) {
        self.position = position
        self.host = host
    }
}

/// The next times that rows wait for; nil where none does.
package struct DueTimes: Sendable, Hashable {
    /// By the steady clock: delays, retries, timers, timeouts of lists, deadlines.
    package var steady: SteadyTime?
    /// By the time of day: `notBefore` of jobs, times of schedules.
    package var wall: Timestamp?
    /// When the finished root job that ended first did.
    package var firstEnd: Timestamp?

    package init(steady: SteadyTime? = nil, wall: Timestamp? = nil, firstEnd: Timestamp? = nil) {
        self.steady = steady
        self.wall = wall
        self.firstEnd = firstEnd
    }
}

/// What names a row that handling an input will read.
package enum RowKey: Sendable, Hashable {
    case job(JobID)
    case key(owner: UInt32, String)
    case schedule(ScheduleKey)
}

/// Jobs of one owner, queue and state, and their bytes.
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

/// How many jobs, and what they take up on disk.
package struct CountValue: Sendable, Hashable {
    package var jobs: Int
    package var bytes: Int64

    package init(jobs: Int = 0, bytes: Int64 = 0) {
        self.jobs = jobs
        self.bytes = bytes
    }
}
