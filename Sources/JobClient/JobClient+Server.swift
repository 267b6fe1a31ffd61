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
    ///
    /// `settings` has members as `queue.set` names them; null gives a setting back to the daemon's configuration.
    public func setQueue(_ queue: String, _ settings: JSONObject) async throws(JobClientError) -> JSON {
        var params = settings
        params["queue"] = queue.json
        return try await call(.queueSet, params)
    }

    /// What each user has stored and runs, by user number; of the caller alone, unless an administrator asks.
    public func usage() async throws(JobClientError) -> [JSON] {
        try await pages(.serverUsage, of: "users")
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
