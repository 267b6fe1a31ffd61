package import JobModel

/// A store with a method for each command, until the engine speaks in commands.
package protocol CallableJobStore: JobStore {
    /// Stores new jobs, all or none, and numbers them in order.
    func submit(_ jobs: [Job], _ done: @escaping @Sendable (Result<[Submission], StoreError>) -> Void)

    /// Stores the children that `parent` makes, with the parent as it is now, all or none; gives their numbers in order.
    func submit(children: [Job], of parent: Job, _ done: @escaping @Sendable (Result<[JobID], StoreError>) -> Void)

    /// Stores what has become of jobs, all or none. A job that was removed meanwhile stays so.
    func save(_ jobs: [Job], _ done: @escaping @Sendable (Result<Void, StoreError>) -> Void)

    /// Removes a job and everything below it; gives all that were removed.
    func remove(_ job: JobID, _ done: @escaping @Sendable (Result<[RemovedJob], StoreError>) -> Void)

    /// Removes the children that link `link` of `parent` and later ones made, and everything below them.
    func removeChildren(
        of parent: JobID, fromLink link: Int, _ done: @escaping @Sendable (Result<[RemovedJob], StoreError>) -> Void)

    /// Stores the settings of a queue.
    func save(_ queue: QueueSettings, _ done: @escaping @Sendable (Result<Void, StoreError>) -> Void)

    /// Removes finished root jobs (with all below them) that ended before `time` or are not among the latest `count`
    /// finished ones, at most `limit` roots; gives all that were removed, empty when nothing is left to do.
    func purge(
        finishedBefore time: Timestamp, keeping count: Int, atMost limit: Int,
        _ done: @escaping @Sendable (Result<[RemovedJob], StoreError>) -> Void)

    /// Writes and removes a byte, to see whether the storage works.
    func probe(_ done: @escaping @Sendable (Result<Void, StoreError>) -> Void)

    func job(_ id: JobID) async throws(StoreError) -> Job?

    /// The jobs of these numbers that there are, in their order.
    func jobs(numbered ids: [JobID]) async throws(StoreError) -> [Job]

    /// The jobs that `filter` asks for, at most `filter.limit`.
    func jobs(_ filter: JobFilter) async throws(StoreError) -> [Job]

    /// The children that link `link` of `parent` made, by index, `limit` of them from index `start` on.
    func children(of parent: JobID, link: Int, from start: Int, limit: Int) async throws(StoreError) -> [Job]

    /// The numbers and states of those children, by index.
    func childStates(of parent: JobID, link: Int) async throws(StoreError) -> [(id: JobID, state: JobState)]

    /// The first `limit` queued jobs of `queue` in starting order (higher priority, then lower number) that come after
    /// `position`, without those for the hosts in `excluding`.
    func ready(
        queue: String, after position: ReadyPosition?, excluding hosts: Set<String>, limit: Int
    ) async throws(StoreError) -> [Job]

    /// The scheduled jobs whose time has come, earliest first, at most `limit`.
    func due(at time: Timestamp, limit: Int) async throws(StoreError) -> [Job]

    /// The jobs that are not finished and whose deadline has passed, earliest first, at most `limit`.
    func overdue(at time: Timestamp, limit: Int) async throws(StoreError) -> [Job]

    /// When the next scheduled job is due and when the next deadline of an unfinished job passes.
    func nextTimes() async throws(StoreError) -> (due: Timestamp?, deadline: Timestamp?)

    /// When the first of the finished root jobs ended.
    func firstEnd() async throws(StoreError) -> Timestamp?

    /// The jobs that were running when the daemon ended.
    func interrupted() async throws(StoreError) -> [Job]

    /// How many jobs there are by owner, queue and state.
    func counts() async throws(StoreError) -> [JobCount]

    func queues() async throws(StoreError) -> [QueueSettings]
}
