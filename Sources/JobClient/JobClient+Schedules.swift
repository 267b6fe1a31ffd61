public import JobModel
import JobProtocol

extension JobClient {
    /// When a schedule submits its job.
    public enum ScheduleTiming: Sendable, Hashable {
        /// At the times of five crontab(5) fields, in an IANA time zone or in UTC.
        case calendar(String, zone: String? = nil)
        /// Every so many seconds, starting when it is set.
        case every(Double)
    }

    /// Settings of a schedule; the daemon chooses those that are left out.
    public struct ScheduleOptions: Sendable, Hashable {
        /// For times that passed while no daemon ran: "last", "none" or "all".
        public var catchUp: String?
        /// If the previous job is not finished: "skip" or "queue".
        public var overlap: String?
        /// Whether it is created suspended.
        public var isSuspended = false

        /// The daemon's choices.
        public init() {}
    }

    /// Creates a schedule, or replaces the one with that name, and returns it.
    public func setSchedule(
        _ name: String, _ timing: ScheduleTiming, spec: JSON, options: ScheduleOptions = ScheduleOptions()
    ) async throws(JobClientError) -> JSON {
        var params: JSONObject = [
            "schedule": name.json, "spec": spec, "catchUp": options.catchUp?.json, "overlap": options.overlap?.json,
            "suspended": options.isSuspended ? true : JSON?.none,
        ]
        switch timing {
        case .calendar(let calendar, let zone): (params["calendar"], params["zone"]) = (calendar.json, zone?.json)
        case .every(let seconds): params["every"] = seconds.json
        }
        return try await call(.scheduleSet, params)
    }

    /// A schedule of the caller, or, for administrators, of another `owner`.
    public func schedule(_ name: String, owner: UInt32? = nil) async throws(JobClientError) -> JSON {
        try await call(.scheduleGet, Self.schedule(name, owner))
    }

    /// All schedules that the caller may see, by owner and name; long specs are left out.
    public func schedules() async throws(JobClientError) -> [JSON] {
        var schedules: [JSON] = []
        var after: String?
        repeat {
            let page = try await call(.scheduleList, ["after": after?.json])
            let more = try page.member("schedules", of: .scheduleList, \.array)
            schedules += more
            // Empty pages could go on for ever.
            after = more.isEmpty ? nil : page["next"]?.string
        } while after != nil
        return schedules
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
