public import JobModel
import JobProtocol

extension JobClient {
    /// What the daemon is: its version, limits and sources, and as whom it sees the caller.
    public func info() async throws(JobClientError) -> JSON { try await call(.serverInfo) }

    /// What the daemon has to do and has done.
    public func stats() async throws(JobClientError) -> JSON { try await call(.serverStats) }

    /// The daemon's metrics, which only administrators may see, as families with their samples.
    public func metrics() async throws(JobClientError) -> [JSON] {
        try await call(.serverStats, ["metrics": true]).member("metrics", of: .serverStats, \.array)
    }

    /// All queues, as objects with name, limit and counts.
    public func queues() async throws(JobClientError) -> [JSON] {
        try await call(.queueList).member("queues", of: .queueList, \.array)
    }

    /// Changes a queue, which only administrators may do, and returns it; what is left out stays as it is.
    public func setQueue(
        _ queue: String, concurrency: Int? = nil, isSuspended: Bool? = nil
    ) async throws(JobClientError) -> JSON {
        try await call(
            .queueSet, ["queue": queue.json, "concurrency": concurrency?.json, "suspended": isSuspended?.json])
    }

    /// Has the daemon copy its state, which only administrators may do; the size of the copy in bytes. Its pieces are read
    /// over the same connection with ``backupPiece(offset:)``.
    public func backUp() async throws(JobClientError) -> Int {
        try await call(.serverBackup).member("size", of: .serverBackup, \.int)
    }

    /// Reads at most 256 KiB of the copy that this connection had made last, from `offset` on.
    public func backupPiece(offset: Int) async throws(JobClientError) -> ResultPiece {
        try ResultPiece(.serverBackup, try await call(.serverBackup, ["offset": offset.json]), at: offset)
    }
}
