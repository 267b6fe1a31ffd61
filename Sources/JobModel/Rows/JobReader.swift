/// Reads for clients and runs beside the engine, each call in one snapshot.
///
/// Calls block, so event loops do not make them. A call sees every round that was committed before. Jobs that are being
/// removed, and their children, do not exist for readers.
package protocol JobReader: AnyObject, Sendable {
    /// A job with its spec; nil if there is none.
    func job(_ id: JobID) throws(StoreError) -> StoredJob?
    /// The existing ones of these jobs, in the same order; ends early if their texts pass 2 MiB.
    func jobs(_ ids: [JobID]) throws(StoreError) -> [StoredJob]
    /// Owner, state and version of the existing ones of these jobs.
    func standings(of ids: [JobID]) throws(StoreError) -> [JobID: JobStanding]
    /// The jobs that a filter selects, in its order; ends early if their texts pass 2 MiB, and says so.
    func page(_ filter: JobFilter) throws(StoreError) -> (jobs: [StoredJob], endsEarly: Bool)
    /// The ids of the jobs that a filter selects, in its order.
    func ids(_ filter: JobFilter) throws(StoreError) -> [JobID]
    /// The outcomes of a list's children with an index from `index` on, by index.
    func outcomes(of job: JobID, list: Int64, from index: Int, limit: Int) throws(StoreError) -> [ChildOutcome]

    /// A schedule with its spec; nil if there is none.
    func schedule(_ key: ScheduleKey) throws(StoreError) -> StoredSchedule?
    /// The schedules after a key, by key, of one owner or of all, without long specs.
    func schedules(after: ScheduleKey?, owner: UInt32?, limit: Int) throws(StoreError) -> [StoredSchedule]

    func checkpoint(of job: JobID, link: Int) throws(StoreError) -> [UInt8]?
    /// The checkpoints with which unfinished jobs will continue their present links.
    func unfinishedTransfers(limit: Int) throws(StoreError) -> [UnfinishedTransfer]
    /// Returns the record of the last download to a path.
    func download(to path: String) throws(StoreError) -> [UInt8]?
    /// The blobs of lives before `life` to which rows refer, in order after `after`.
    func blobs(beforeLife life: Int64, after: BlobReference?, limit: Int) throws(StoreError) -> [BlobReference]

    /// The nodes of the last day, by name; empty for a store that only one daemon can use.
    func nodes() throws(StoreError) -> [NodeRow]

    /// Copies the state of one moment, and the files that it names, into one file; returns its path. This takes long, and
    /// fails if the store is closed meanwhile.
    func copyState() throws(StoreError) -> String
}

extension JobReader {
    package func nodes() throws(StoreError) -> [NodeRow] { [] }
}

/// A job as a reader returns it.
package struct StoredJob: Sendable {
    package let row: JobRow
    /// Its spec or item.
    package let document: NewJobRow.Document
    /// The template of its list, if it has an item.
    package let template: StoredValue?

    package init(row: JobRow, document: NewJobRow.Document, template: StoredValue?) {
        self.row = row
        self.document = document
        self.template = template
    }
}

/// Says whether a job is over, and which of two snapshots of it is newer.
package struct JobStanding: Sendable, Hashable {
    package let owner: UInt32
    package let state: JobState
    package let version: Int64

    package init(owner: UInt32, state: JobState, version: Int64) {
        self.owner = owner
        self.state = state
        self.version = version
    }
}

/// The outcome of a child.
package typealias ChildOutcome = (job: JobID, index: Int, state: JobState, carried: Carried?)

/// A schedule as a reader returns it.
package struct StoredSchedule: Sendable {
    /// The longest spec in a list of schedules, in bytes.
    package static let longestShownSpec = 4096

    package let schedule: Schedule
    /// The JSON text of its spec; nil if it is too long for a list.
    package let spec: [UInt8]?
    /// The state of its last job; nil if that is gone.
    package let lastState: JobState?

    package init(_ schedule: Schedule, spec: [UInt8]?, lastState: JobState?) {
        self.schedule = schedule
        self.spec = spec
        self.lastState = lastState
    }
}
