public import JobModel

/// A job at one moment.
public struct JobSnapshot: Sendable, Hashable {
    /// The job object with all members from the daemon.
    public let json: JSON
    /// The job's id.
    public let id: Int64
    /// `scheduled`, `queued`, `running`, `succeeded`, `failed` or `cancelled`.
    public let state: String

    /// Reads a job object; nil if `json` is not one.
    public init?(_ json: JSON) {
        guard let id = json["job"]?.int, let state = json["state"]?.string else { return nil }
        (self.json, self.id, self.state) = (json, Int64(id), state)
    }

    /// Whether the state is final.
    public var isFinished: Bool { JobState(rawValue: state)?.isTerminal ?? false }
    /// Whether the job succeeded.
    public var isSucceeded: Bool { state == "succeeded" }
    /// The result, which may be `null`; nil without one, or if it is too long for the job object.
    ///
    /// ``JobClient/completed(_:)`` then reads it.
    public var result: JSON? { json["result"] }
    /// The size of a result's JSON that is too long for the job object, in bytes.
    public var resultSize: Int? { json["resultSize"]?.int }
    /// The error of a failed job, or of the last attempt.
    public var error: JSON? { json["error"] }
    /// The progress of a running job.
    public var progress: JobProgress? { json["progress"].flatMap(JobProgress.init) }
}

/// The progress of a job.
public struct JobProgress: Sendable, Hashable {
    /// The bytes or jobs done.
    public let completed: Int64
    /// The total of bytes or jobs, if known.
    public let total: Int64?
    /// `bytes` or `jobs`.
    public let unit: String
    /// The fraction done, 0 to 1, if the total is known.
    public let fraction: Double?
    /// Units per second, if known.
    public let rate: Double?
    /// The remaining seconds, if known.
    public let eta: Double?
    /// The value from the daemon.
    public let json: JSON

    /// Reads a progress object; nil if `json` is not one.
    public init?(_ json: JSON) {
        guard let completed = json["completed"]?.int, let unit = json["unit"]?.string else { return nil }
        (self.completed, self.unit, self.json) = (Int64(completed), unit, json)
        total = json["total"]?.int.map(Int64.init)
        fraction = json["fraction"]?.double
        rate = json["rate"]?.double
        eta = json["eta"]?.double
    }
}
