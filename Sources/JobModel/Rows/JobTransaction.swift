/// The store, inside one round: reads and writes that are answered at once.
///
/// It is used by one thread and valid within one round. What was written is read back in the same round. After an error it
/// refuses every further call, and the round is undone. Each query has a limit, and gives rows in the order that it names.
/// A row that is damaged counts as none: the store reports it once, and every query passes over it.
package protocol JobTransaction: AnyObject {
    // MARK: Jobs

    /// Brings rows to hand that handling the round's inputs will read, with one query, locked in the order of their keys.
    /// A store that reads a row in microseconds does nothing.
    func load(_ keys: [RowKey]) throws(StoreError)
    /// The job of this id, also one that is being removed; nil where there is none.
    func job(_ id: JobID) throws(StoreError) -> JobRow?
    /// The spec or item of a job, as it was inserted; nil where there is none.
    func document(of job: JobID) throws(StoreError) -> NewJobRow.Document?
    /// Inserts jobs and numbers them in their order; their ids were never used before.
    func insert(_ jobs: [NewJobRow]) throws(StoreError) -> [Inserted]
    /// Stores a job as it is now. The row must be there.
    func update(_ job: JobRow) throws(StoreError)
    /// Drops a job with its spec, its tags, its key and its checkpoints. Its children stay.
    func delete(_ job: JobID) throws(StoreError)
    /// Frees the key of a job that is being removed; the row stays.
    func releaseKey(of job: JobID) throws(StoreError)

    /// The ready jobs (``JobRow/isReady``) of an owner in a queue behind a position, in starting order, without those
    /// whose host is one of these.
    func ready(
        queue: String, owner: UInt32, after: ReadyPosition?, excluding hosts: Set<String>, limit: Int
    ) throws(StoreError) -> [ReadyRow]
    /// Unfinished jobs whose `due` or `deadline` has come by the steady clock, and scheduled ones without a `due` whose
    /// `notBefore` has by the wall; by id. None twice, and none that is being removed.
    func due(steady: SteadyTime, wall: Timestamp, limit: Int) throws(StoreError) -> [JobRow]
    /// The earliest of these times over all rows that wait for one, and the earliest end of a finished root job.
    func dueTimes() throws(StoreError) -> DueTimes
    /// Jobs with a run of another life, by id.
    func running(exceptLife life: Int64, limit: Int) throws(StoreError) -> [JobRow]
    /// Unfinished jobs whose `crashes` is above zero, by id.
    func suspects(after: JobID, limit: Int) throws(StoreError) -> [JobRow]
    /// Children of a list with an id above `after`, by id: all, those that have not ended, or those that wait for its gate.
    func children(
        of job: JobID, list: Int64, _ which: ChildSelection, after: JobID, limit: Int
    ) throws(StoreError) -> [JobRow]
    /// Children of any list that links of a job from `link` on opened, by id.
    func children(of job: JobID, fromLink link: Int, limit: Int) throws(StoreError) -> [JobRow]
    /// Finished root jobs that are not being removed and ended before a time, of one owner or of all, the earliest end first.
    func finished(owner: UInt32?, before: Timestamp, limit: Int) throws(StoreError) -> [JobRow]

    // MARK: Checkpoints

    /// Keeps what a transfer of a link needs to go on; nil drops it. The job's `checkpointSize` is the caller's to keep.
    func save(checkpoint: [UInt8]?, of job: JobID, link: Int) throws(StoreError)
    /// The checkpoints of a job's links from `link` on, by link.
    func checkpoints(of job: JobID, fromLink link: Int) throws(StoreError) -> [(link: Int, text: [UInt8])]
    /// Remembers a download to a path for a later validation; the 100,000 latest are kept.
    func save(download: [UInt8], to path: String) throws(StoreError)

    // MARK: Lists

    /// The open list of a job.
    func list(of job: JobID) throws(StoreError) -> ListRow?
    /// Stores an open list, new or not.
    func put(_ list: ListRow) throws(StoreError)
    /// Drops the row of a list that is over; its template stays as long as its children do.
    func closeList(of job: JobID) throws(StoreError)
    /// Drops the templates of the lists that links of a job from `link` on opened.
    func dropTemplates(of job: JobID, fromLink link: Int) throws(StoreError)

    // MARK: Schedules

    func schedule(_ key: ScheduleKey) throws(StoreError) -> ScheduleRow?
    /// Stores a schedule, new or not; its spec stays where it is not given.
    func put(_ schedule: ScheduleRow, spec: [UInt8]?) throws(StoreError)
    func removeSchedule(_ key: ScheduleKey) throws(StoreError)
    /// Schedules whose `next` has come, the earliest first.
    func dueSchedules(at: Timestamp, limit: Int) throws(StoreError) -> [ScheduleRow]
    /// Schedules behind a key, by key: all, for a change of clocks or zones.
    func schedules(after: ScheduleKey?, limit: Int) throws(StoreError) -> [ScheduleRow]
    /// The schedule whose last job this is; nil where there is none.
    func schedule(ofLastJob job: JobID) throws(StoreError) -> ScheduleRow?
    /// How many schedules an owner has, and what they take up on disk.
    func scheduleCounts() throws(StoreError) -> [UInt32: CountValue]

    // MARK: The rest

    /// Settings of queues that administrators stored.
    func queues() throws(StoreError) -> [QueueSettings]
    func put(_ queue: QueueSettings) throws(StoreError)
    /// Jobs by owner, queue and state; children count like any other.
    func counts() throws(StoreError) -> [CountKey: CountValue]
    /// Stores counts as they are now; those of no jobs are dropped.
    func put(_ counts: [CountKey: CountValue]) throws(StoreError)
    /// Work left over, by id, behind `after`.
    func work(after: Int64, limit: Int) throws(StoreError) -> [WorkRow]
    /// The oldest work left over, other than `removeParts`, of the first owner above `owner` that has some; nil where no
    /// owner above it has. So owners have their work done in turn.
    func nextWork(ofOwnerAbove owner: UInt32?) throws(StoreError) -> WorkRow?
    /// Whether there is work left over of this kind about a job.
    func hasWork(_ kind: WorkRow.Kind, of job: JobID) throws(StoreError) -> Bool
    /// Adds a piece of work; gives its id.
    func add(_ work: WorkRow) throws(StoreError) -> Int64
    /// Stores how far a piece of work has come.
    func update(_ work: WorkRow) throws(StoreError)
    func endWork(_ id: Int64) throws(StoreError)
    /// A number that counts up with each call and was never given before: of lists.
    func nextNumber() throws(StoreError) -> Int64
}

/// Which children of a list are meant.
package enum ChildSelection: Sendable {
    case all
    case unfinished
    /// Those that wait for the list's gate, by their index.
    case gated
}

/// How a round ended.
package enum RoundEnd: Sendable {
    case committed
    /// Nothing of it happened.
    case undone(StoreError)
    /// Its fate is not known before a later round is committed: then nothing of it happened, or ever will.
    case unknown(StoreError)
}

/// Keeps jobs on stable storage, a round at a time.
package protocol JobStore: AnyObject {
    /// Runs `body` in a transaction and commits it with one fsync; nothing is synced where nothing was written. To be called
    /// by one thread at a time.
    func round(_ body: (any JobTransaction) throws(StoreError) -> Void) -> RoundEnd
}
