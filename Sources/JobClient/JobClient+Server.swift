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
    public func usage() async throws(JobClientError) -> [JSON] { try await pages(.serverUsage, of: "users") }

    /// The daemons that share the jobs, by name.
    public func nodes() async throws(JobClientError) -> [JSON] {
        try await call(.serverNodes).member("nodes", of: .serverNodes, \.array)
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

extension JobClient {
    /// Creates a schedule, or replaces the one with that name, and returns it.
    ///
    /// `settings` has members as `schedule.set` names them: `spec`, and `calendar` or `every`.
    public func setSchedule(_ name: String, _ settings: JSONObject) async throws(JobClientError) -> JSON {
        var params = settings
        params["schedule"] = name.json
        return try await call(.scheduleSet, params)
    }

    /// A schedule of the caller, or, for administrators, of another `owner`.
    public func schedule(_ name: String, owner: UInt32? = nil) async throws(JobClientError) -> JSON {
        try await call(.scheduleGet, Self.schedule(name, owner))
    }

    /// All schedules that the caller may see, by owner and name; long specs are left out.
    public func schedules() async throws(JobClientError) -> [JSON] { try await pages(.scheduleList, of: "schedules") }

    /// Removes a schedule; its jobs stay.
    public func removeSchedule(_ name: String, owner: UInt32? = nil) async throws(JobClientError) {
        _ = try await call(.scheduleRemove, Self.schedule(name, owner))
    }

    /// Submits a schedule's job now, in addition to its times, and returns the job's id.
    public func runSchedule(_ name: String, owner: UInt32? = nil) async throws(JobClientError) -> Int64 {
        Int64(try await call(.scheduleRun, Self.schedule(name, owner)).member("job", of: .scheduleRun, \.int))
    }

    /// Suspends or resumes a schedule, and returns it. Times that pass while it is suspended get no job.
    public func setSchedule(
        _ name: String, isSuspended: Bool, owner: UInt32? = nil
    ) async throws(JobClientError) -> JSON {
        try await call(isSuspended ? .scheduleSuspend : .scheduleResume, Self.schedule(name, owner))
    }

    private static func schedule(_ name: String, _ owner: UInt32?) -> JSONObject {
        ["schedule": name.json, "owner": owner.map { Int($0).json }]
    }
}
