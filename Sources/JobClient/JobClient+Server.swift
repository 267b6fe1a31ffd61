public import JobModel
import JobProtocol

extension JobClient {
    /// The daemon's version, limits and sources, and the caller's identity.
    public func info() async throws(JobClientError) -> JSON { try await call(.serverInfo) }

    /// The numbers of jobs and connections, and totals since the start.
    public func stats() async throws(JobClientError) -> JSON { try await call(.serverStats) }

    /// The daemon's metrics, as families with samples; only for administrators.
    public func metrics() async throws(JobClientError) -> [JSON] {
        try await call(.serverStats, ["metrics": true]).member("metrics", of: .serverStats, \.array)
    }

    /// All queues, with their limits and counts.
    public func queues() async throws(JobClientError) -> [JSON] {
        try await call(.queueList).member("queues", of: .queueList, \.array)
    }

    /// Changes the given settings of a queue, and returns it; only for administrators.
    public func setQueue(
        _ queue: String, concurrency: Int? = nil, isSuspended: Bool? = nil
    ) async throws(JobClientError) -> JSON {
        try await call(
            .queueSet, ["queue": queue.json, "concurrency": concurrency?.json, "suspended": isSuspended?.json])
    }

    /// Copies the daemon's state, and returns the size of the copy; only for administrators.
    ///
    /// ``backupPiece(offset:)`` reads the copy over the same connection.
    public func backUp() async throws(JobClientError) -> Int {
        try await call(.serverBackup).member("size", of: .serverBackup, \.int)
    }

    /// Reads at most 256 KiB of this connection's latest copy, from `offset`.
    public func backupPiece(offset: Int) async throws(JobClientError) -> ResultPiece {
        try ResultPiece(.serverBackup, try await call(.serverBackup, ["offset": offset.json]), at: offset)
    }
}
