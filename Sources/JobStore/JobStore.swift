package import JobModel

/// Keeps jobs on stable storage.
///
/// Writes are enqueued by the call itself, in the order of the calls, and never block the caller. Those that arrive while
/// one fsync runs share the next one. `done` is called on a thread of the store once the write is durable, or has failed
/// and left nothing behind. Reads see every write whose `done` was called.
package protocol JobStore: Sendable {
    /// Makes a change durable.
    func write(_ write: StoreWrite, _ done: @escaping @Sendable (Result<StoreWritten, StoreError>) -> Void)

    /// Answers a question, on a thread of the store.
    func read(_ read: StoreRead, _ done: @escaping @Sendable (Result<StoreRows, StoreError>) -> Void)

    /// Marks that a source of a job is at work, or is no longer. Costs no fsync: the mark outlives the process, but not
    /// the machine. `StoredState.crashed` tells the next daemon what was marked; a clean close leaves no mark.
    func mark(_ job: JobID, isWorking: Bool)

    /// Keeps the checkpoint of a transfer of link `link` until the job succeeded at that link or was removed; nil drops it. A job
    /// that succeeded or was cancelled gets no new one.
    func save(
        checkpoint: JSON?, of job: JobID, link: Int, _ done: @escaping @Sendable (Result<Void, StoreError>) -> Void)

    /// Keeps the record of a download to `path`, for a later validation. The 100,000 latest are kept, and none of more than 4 KiB.
    func save(download: JSON, to path: String, _ done: @escaping @Sendable (Result<Void, StoreError>) -> Void)

    func checkpoint(of job: JobID, link: Int) async throws(StoreError) -> JSON?

    /// By their links, without those that make no sense.
    func checkpoints(of job: JobID, links: ClosedRange<Int>) async throws(StoreError) -> [Int: JSON]

    /// The checkpoints that unfinished jobs, or this one, will go on with at their present links; at most so many.
    func unfinishedTransfers(of job: JobID?, atMost limit: Int) async throws(StoreError) -> [UnfinishedTransfer]

    func download(to path: String) async throws(StoreError) -> JSON?

    /// Copies all that is stored, as it is at one moment, while it is used.
    func backUp() async throws(StoreError) -> StoreBackup

    /// Waits for the writes before it and closes the database.
    func close() async
}
