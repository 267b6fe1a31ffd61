public import JobModel
import JobProtocol

extension JobClient {
    /// When a schedule submits its job.
    public enum ScheduleTiming: Sendable, Hashable {
        /// At the times that five fields of crontab(5) say, in a zone of IANA's; UTC where none is named.
        case calendar(String, zone: String? = nil)
        /// Every so many seconds from the moment on in which it is set.
        case every(Double)
    }

    /// What a schedule does beside submitting; what is left out the daemon decides.
    public struct ScheduleOptions: Sendable, Hashable {
        /// What becomes of times that passed while no daemon ran: "last", "none" or "all".
        public var catchUp: String?
        /// What becomes of a time while the job before is not finished: "skip" or "queue".
        public var overlap: String?
        /// Whether it is made suspended.
        public var isSuspended = false

        /// Leaves all to the daemon.
        public init() {}
    }

    /// Makes a schedule, or replaces the one of that name, and returns it as the daemon shows it.
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

    /// A schedule of the caller; administrators may name another `owner`.
    public func schedule(_ name: String, owner: UInt32? = nil) async throws(JobClientError) -> JSON {
        try await call(.scheduleGet, Self.schedule(name, owner))
    }

    /// All schedules that the caller may see, by owner and name. Long specs are left out.
    public func schedules() async throws(JobClientError) -> [JSON] {
        var schedules: [JSON] = []
        var after: String?
        repeat {
            let page = try await call(.scheduleList, ["after": after?.json])
            let more = try page.member("schedules", of: .scheduleList, \.array)
            schedules += more
            // A page without schedules would never lead to the end.
            after = more.isEmpty ? nil : page["next"]?.string
        } while after != nil
        return schedules
    }

    /// Removes a schedule; the jobs that it submitted stay.
    public func removeSchedule(_ name: String, owner: UInt32? = nil) async throws(JobClientError) {
        _ = try await call(.scheduleRemove, Self.schedule(name, owner))
    }

    /// Has a schedule submit its job now, beside its times, and returns the job's id.
    public func runSchedule(_ name: String, owner: UInt32? = nil) async throws(JobClientError) -> Int64 {
        Int64(try await call(.scheduleRun, Self.schedule(name, owner)).member("job", of: .scheduleRun, \.int))
    }

    /// Suspends a schedule, whose times then pass without a job, or lets it go on; returns it.
    public func setSchedule(
        _ name: String, isSuspended: Bool, owner: UInt32? = nil
    ) async throws(JobClientError) -> JSON {
        try await call(isSuspended ? .scheduleSuspend : .scheduleResume, Self.schedule(name, owner))
    }

    private static func schedule(_ name: String, _ owner: UInt32?) -> JSONObject {
        ["schedule": name.json, "owner": owner.map { Int($0).json }]
    }
}
