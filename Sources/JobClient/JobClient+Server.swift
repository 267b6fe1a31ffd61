public import JobModel
import JobProtocol

extension JobClient {
    /// What the daemon is: its version, limits and sources, and as whom it sees the caller.
    public func info() async throws(JobClientError) -> JSON { try await call(.serverInfo) }

    /// What the daemon has to do and has done.
    public func stats() async throws(JobClientError) -> JSON { try await call(.serverStats) }

    /// The daemon's metrics, which only administrators may see, as families with their samples.
    public func metrics() async throws(JobClientError) -> [JSON] {
        let params = JSONObject([JSONObject.Member(name: "metrics", value: true)])
        guard let metrics = try await call(.serverStats, params)["metrics"]?.array else {
            throw .malformed(.serverStats, "metrics")
        }
        return metrics
    }

    /// All queues, as objects with name, limit and counts.
    public func queues() async throws(JobClientError) -> [JSON] {
        guard let queues = try await call(.queueList)["queues"]?.array else { throw .malformed(.queueList, "queues") }
        return queues
    }

    /// Changes a queue, which only administrators may do, and returns it; what is left out stays as it is.
    public func setQueue(
        _ queue: String, concurrency: Int? = nil, isSuspended: Bool? = nil
    ) async throws(JobClientError) -> JSON {
        var params = JSONObject()
        params.append("queue", .string(queue))
        params.append("concurrency", ifPresent: concurrency.map { JSON($0) })
        params.append("suspended", ifPresent: isSuspended.map { .bool($0) })
        return try await call(.queueSet, params)
    }
}
