/// Reads and writes of the store in one round, answered at once.
///
/// One thread uses a transaction, within one round. Reads see the writes of the round. After an error, it refuses every
/// further call, and the round is undone. Each query has a limit, and returns rows in the order that it names. Queries pass
/// over damaged rows, which the store reports once.
package protocol JobTransaction: AnyObject {
    /// What other nodes have changed; nil if they changed nothing. The first question of a round.
    func news() throws(StoreError) -> News?

    // MARK: Jobs

    /// Loads the rows that the inputs of the round will read, with one query, and locks them in the order of their keys. A store
    /// that reads a row in microseconds does nothing, and does not ask for them.
    func load(_ keys: @autoclosure () -> [RowKey]) throws(StoreError)
    /// A job, even if it is being removed; nil if there is none.
    func job(_ id: JobID) throws(StoreError) -> JobRow?
    /// The spec or item of a job; nil if there is none.
    func document(of job: JobID) throws(StoreError) -> NewJobRow.Document?
    /// Inserts a job with a new, higher id. No job may hold its key (``JobRow/holdsKey``).
    func insert(_ job: NewJobRow) throws(StoreError) -> JobID
    /// Stores everything of a job but its ``JobRow/terms``.
    func update(_ job: JobRow) throws(StoreError)
    /// Stores the terms of a job, except for its key, after it was updated from `old`.
    func replaceTerms(of job: JobRow, was old: JobRow) throws(StoreError)
    func holder(ofKey key: String, owner: UInt32) throws(StoreError) -> KeyHolder?
    /// Deletes a job with its spec, tags, key and checkpoints, but not its children.
    func delete(_ job: JobID) throws(StoreError)
    /// Releases the key of a job that is being removed.
    func releaseKey(of job: JobID) throws(StoreError)

    /// The ready jobs (``JobRow/isReady``) of an owner in a queue behind a position, in starting order, except those for
    /// these hosts.
    func ready(
        queue: String, owner: UInt32, after: ReadyPosition?, excluding hosts: Set<String>, limit: Int
    ) throws(StoreError) -> [ReadyRow]
    /// Unfinished jobs whose `due` or `deadline` has come by the steady clock, and scheduled ones without `due` whose
    /// `notBefore` has come by the wall clock; by id, except jobs that are being removed.
    func due(steady: SteadyTime, wall: Timestamp, limit: Int) throws(StoreError) -> [JobRow]
    /// The earliest of these times in all rows, damaged ones included, that are later than `steady` or `wall`, and the earliest
    /// end of a finished root job.
    func dueTimes(after steady: SteadyTime, _ wall: Timestamp) throws(StoreError) -> DueTimes
    /// Returns jobs with a run of a life that is over, by id.
    func lostRuns(limit: Int) throws(StoreError) -> [JobRow]
    /// Whether a life that is over stopped in order; nil if the store does not know.
    func wasStopped(life: Int64) throws(StoreError) -> Bool?
    /// Jobs without a run, with an id above `after`, that have checkpoints and are bound to nodes that are gone, by id.
    func stranded(after: JobID, limit: Int) throws(StoreError) -> [JobRow]
    /// To be called once no run of a life that is over is left.
    func forgetLostLives() throws(StoreError)
    /// Returns unfinished jobs whose `crashes` is above zero, by id.
    func suspects(after: JobID, limit: Int) throws(StoreError) -> [JobRow]
    /// The unfinished children of a list with an id above `after`, by id; with `areGated`, those that wait for its gate.
    func unfinishedChildren(
        of job: JobID, list: Int64, areGated: Bool, after: JobID, limit: Int
    ) throws(StoreError) -> [JobRow]
    /// The children of all lists of a job's links from `link` on, by id.
    func children(of job: JobID, fromLink link: Int, limit: Int) throws(StoreError) -> [JobRow]
    /// Root jobs that ended before a time, of one owner or of all, by their end, except jobs that are being removed or have
    /// dependents.
    func finished(owner: UInt32?, before: Timestamp, limit: Int) throws(StoreError) -> [JobRow]

    // MARK: Dependencies

    /// Remembers, once, that a job needs the outcome of `target`, until ``removeDependency(of:on:)``.
    func addDependency(of job: JobID, on target: JobID) throws(StoreError)
    func removeDependency(of job: JobID, on target: JobID) throws(StoreError)
    /// The jobs with an id above `after` that need the outcome of `target`, by id; some may be gone.
    func dependents(of target: JobID, after: JobID, limit: Int) throws(StoreError) -> [JobID]
    /// The jobs whose outcome a job needs, by id; some may be gone.
    func dependencies(of job: JobID, limit: Int) throws(StoreError) -> [JobID]

    // MARK: Checkpoints

    /// Stores the checkpoint of a link; nil deletes it. The caller updates the job's `checkpointSize`.
    func save(checkpoint: [UInt8]?, of job: JobID, link: Int) throws(StoreError)
    func checkpoints(of job: JobID, fromLink link: Int) throws(StoreError) -> [(link: Int, text: [UInt8])]
    /// Remembers a download to a path for a later validation, until 100,000 others were saved.
    func save(download: [UInt8], to path: String) throws(StoreError)

    // MARK: Lists

    func list(of job: JobID) throws(StoreError) -> ListRow?
    func put(_ list: ListRow) throws(StoreError)
    /// Deletes the row of a list that is over; its template stays as long as its children.
    func closeList(of job: JobID) throws(StoreError)
    /// Deletes the templates of all lists of a job's links from `link` on.
    func dropTemplates(of job: JobID, fromLink link: Int) throws(StoreError)

    // MARK: Schedules

    func schedule(_ key: ScheduleKey) throws(StoreError) -> Schedule?
    /// Stores a schedule, new or not; without `spec`, it keeps its spec.
    func put(_ schedule: Schedule, spec: [UInt8]?) throws(StoreError)
    func removeSchedule(_ key: ScheduleKey) throws(StoreError)
    /// Schedules whose `next` has come, by that time.
    func dueSchedules(at: Timestamp, limit: Int) throws(StoreError) -> [Schedule]
    func schedules(after: ScheduleKey?, limit: Int) throws(StoreError) -> [Schedule]
    func schedule(ofLastJob job: JobID) throws(StoreError) -> Schedule?
    /// The number of each owner's schedules, and their bytes on disk.
    func scheduleCounts() throws(StoreError) -> [UInt32: CountValue]

    // MARK: Queues, counts and work

    /// What administrators set of queues, by the queue's name.
    func queues() throws(StoreError) -> [String: QueueOverrides]
    /// Stores what administrators set of a queue; nil forgets the queue.
    func put(_ overrides: QueueOverrides?, ofQueue name: String) throws(StoreError)
    /// Jobs by owner, queue and state, children included.
    func counts() throws(StoreError) -> [CountKey: CountValue]
    /// Stores counts; those without jobs need not be kept.
    func put(_ counts: [CountKey: CountValue]) throws(StoreError)
    /// Unfinished work with an id above `after`, by id.
    func work(after: Int64, limit: Int) throws(StoreError) -> [WorkRow]
    /// The oldest unfinished work, other than `removeParts`, of the first owner above `owner` that has some; nil if none has.
    /// So owners take turns.
    func nextWork(ofOwnerAbove owner: UInt32?) throws(StoreError) -> WorkRow?
    func hasWork(_ kind: WorkRow.Kind, of job: JobID) throws(StoreError) -> Bool
    /// Adds a piece of work; returns its id.
    func add(_ work: WorkRow) throws(StoreError) -> Int64
    /// Stores the position of a piece of work.
    func update(_ work: WorkRow) throws(StoreError)
    func endWork(_ id: Int64) throws(StoreError)
    /// A new, higher number, for a list.
    func nextNumber() throws(StoreError) -> Int64
}

/// The end of a round.
package enum RoundEnd: Sendable {
    case committed
    /// It changed nothing.
    case undone(StoreError)
    /// Its fate is unknown until ``JobStore/settle()`` tells it. A store that cannot tell settles it with another round: once
    /// that is committed, it has changed nothing, and never will.
    case unknown(StoreError)
}

extension JobTransaction {
    package func news() throws(StoreError) -> News? { nil }
    package func load(_ keys: @autoclosure () -> [RowKey]) throws(StoreError) {}
    package func wasStopped(life: Int64) throws(StoreError) -> Bool? { nil }
    package func stranded(after: JobID, limit: Int) throws(StoreError) -> [JobRow] { [] }
    package func forgetLostLives() throws(StoreError) {}
}

/// Stores jobs, a round at a time.
package protocol JobStore: AnyObject {
    /// Runs `body` in a transaction and commits it with one fsync, or none if it wrote nothing. One thread at a time calls
    /// this.
    func round(_ body: (any JobTransaction) throws(StoreError) -> Void) -> RoundEnd
    /// The end of the last round whose fate was unknown; nil as long as that is so. Rounds before it is known are undone.
    func settle() -> RoundEnd?
    /// The number of this start of a daemon; another one once the store has found that the life was over, as others had not
    /// heard of it for too long. The runs of the life before are lost then.
    var life: Int64 { get }
    /// What a node shares with others; nil if its database is its own.
    var sharing: (any SharedStore)? { get }
}

/// A store with several nodes.
package protocol SharedStore: AnyObject {
    /// Milliseconds after which a round is due that only asks for news.
    var pollPause: Int64 { get }
    /// Whether others may take the life to be over soon, as no round was committed for so long.
    var isLeaseEnding: Bool { get }
    /// Ends the life, as its runs were given up; the next round begins another one.
    func giveUpLife()
    /// The other nodes that have each program, by its name.
    var otherPrograms: [String: [String]] { get }
    /// Whether there were other nodes in the last round.
    var hasOthers: Bool { get }
    /// Calls `hear` from any thread with what other nodes tell, until the store is closed; with an empty text when they may
    /// have news.
    func listen(_ hear: @escaping @Sendable (String) -> Void)
    /// Tells all nodes these texts, of at most 7,999 bytes each; they may be lost.
    func tell(_ texts: some Sequence<String>)
    /// Tells other nodes that there are news, after a commit; returns the milliseconds after which it must be called again.
    func announce() -> Int64?
    /// Milliseconds since the first of the present nodes began.
    var upFor: Int64 { get }
}

extension JobStore {
    package func settle() -> RoundEnd? {
        let end = round { (transaction) throws(StoreError) in _ = try transaction.nextNumber() }
        return if case .committed = end { .undone(StoreError(.write, "It was not committed.")) } else { nil }
    }

    package var sharing: (any SharedStore)? { nil }
}
