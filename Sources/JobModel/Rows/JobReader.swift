/// What clients and runs read, beside the engine: each call is one snapshot, on one of a few connections.
///
/// A call blocks its thread until a connection is free, for a page at most; event loops do not call it. It sees every round
/// that was committed before. Jobs that are being removed, and all below them, are not there.
package protocol JobReader: AnyObject, Sendable {
    /// A job with its spec; nil where there is none.
    func job(_ id: JobID) throws(StoreError) -> StoredJob?
    /// Jobs in the order asked for, without those that are not there; it ends early where their texts pass 2 MiB.
    func jobs(_ ids: [JobID]) throws(StoreError) -> [StoredJob]
    /// Owner, state and version of jobs, without those that are not there.
    func standings(of ids: [JobID]) throws(StoreError) -> [JobID: JobStanding]
    /// The jobs that a filter asks for, in its order; it ends early where their texts pass 2 MiB, and says so.
    func page(_ filter: JobFilter) throws(StoreError) -> (jobs: [StoredJob], endsEarly: Bool)
    /// Children of a list with an index from `index` on, by index, with their outcomes: for the list's own.
    func outcomes(of job: JobID, list: Int64, from index: Int, limit: Int) throws(StoreError) -> [ChildOutcome]

    /// A schedule with its spec; nil where there is none.
    func schedule(_ key: ScheduleKey) throws(StoreError) -> StoredScheduleRow?
    /// Schedules behind a key, by key, of one owner or of all. Long specs are left out.
    func schedules(after: ScheduleKey?, owner: UInt32?, limit: Int) throws(StoreError) -> [StoredScheduleRow]

    func checkpoint(of job: JobID, link: Int) throws(StoreError) -> [UInt8]?
    /// The checkpoints that unfinished jobs, or this one, will go on with at their present links; at most so many.
    func unfinishedTransfers(of job: JobID?, limit: Int) throws(StoreError) -> [UnfinishedTransfer]
    /// The record of the last download to a path.
    func download(to path: String) throws(StoreError) -> [UInt8]?
    /// Names of the blobs that rows refer to, of lives before `life`: those with a name above `after`, in order.
    func blobs(beforeLife life: Int64, after: BlobReference?, limit: Int) throws(StoreError) -> [BlobReference]

    /// Copies all that is stored, as it is at one moment, and the files that it names, into one file; gives its path. It takes
    /// long, and ends early where the store is closed.
    func copyState() throws(StoreError) -> String
}

/// A job as a reader gives it.
package struct StoredJob: Sendable {
    package let row: JobRow
    /// Its spec, or the item that it is made of.
    package let document: NewJobRow.Document
    /// What it is made of with its item, where it has one.
    package let template: StoredValue?

    package init(row: JobRow, document: NewJobRow.Document, template: StoredValue?) {
        self.row = row
        self.document = document
        self.template = template
    }
}

/// What tells whether a job is over, and which of two looks at it is the newer.
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

/// How a child ended.
package struct ChildOutcome: Sendable {
    package let job: JobID
    package let index: Int
    package let state: JobState
    package let carried: Carried?

    package init(job: JobID, index: Int, state: JobState, carried: Carried?) {
        self.job = job
        self.index = index
        self.state = state
        self.carried = carried
    }
}

/// A schedule as a reader gives it.
package struct StoredScheduleRow: Sendable {
    /// Bytes of the longest spec that is shown among others.
    package static let longestShownSpec = 4096

    package let row: ScheduleRow
    /// The JSON text of its spec; nil where it is too long to be shown among others.
    package let spec: [UInt8]?
    /// The state of its last job; nil where there is none any more.
    package let lastState: JobState?

    package init(row: ScheduleRow, spec: [UInt8]?, lastState: JobState?) {
        self.row = row
        self.spec = spec
        self.lastState = lastState
    }
}
