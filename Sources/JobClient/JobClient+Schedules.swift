public import JobModel
import JobProtocol

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
    public func schedules() async throws(JobClientError) -> [JSON] {
        try await pages(.scheduleList, of: "schedules")
    }

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
