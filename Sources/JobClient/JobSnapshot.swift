public import JobModel

/// A job object as the daemon showed it at one moment.
public struct JobSnapshot: Sendable, Hashable {
    /// The object, with all members that the daemon wrote.
    public let json: JSON
    /// The job's id.
    public let id: Int64
    /// `scheduled`, `queued`, `running`, `succeeded`, `failed` or `cancelled`.
    public let state: String

    /// The job that a daemon wrote as `json`, or nil where it is none.
    public init?(_ json: JSON) {
        guard let id = json["job"]?.int, let state = json["state"]?.string else { return nil }
        self.json = json
        self.id = Int64(id)
        self.state = state
    }

    /// Whether the state is one that a job stays in.
    public var isFinished: Bool { JobState(rawValue: state)?.isTerminal ?? false }
    /// Whether it ended well.
    public var isSucceeded: Bool { state == "succeeded" }
    /// The result of a job that succeeded, which may be `null`; nil where it is longer than the daemon shows it in a job.
    ///
    /// ``JobClient/completed(_:)`` reads it then.
    public var result: JSON? { json["result"] }
    /// The bytes of a result's JSON that was left out for its length.
    public var resultSize: Int? { json["resultSize"]?.int }
    /// Why it failed, or why it waits for another attempt.
    public var error: JSON? { json["error"] }
    /// How far it has come, while it runs.
    public var progress: JobProgress? { json["progress"].flatMap(JobProgress.init) }
}

/// How far a job has come.
public struct JobProgress: Sendable, Hashable {
    /// Bytes or jobs done.
    public let completed: Int64
    /// Bytes or jobs in all, or nil while that is not known.
    public let total: Int64?
    /// What is counted: `bytes` or `jobs`.
    public let unit: String
    /// The part done, 0 to 1, or nil while the total is not known.
    public let fraction: Double?
    /// Units a second, or nil while that is not known.
    public let rate: Double?
    /// The seconds left, or nil while that is not known.
    public let eta: Double?
    /// The value as the daemon wrote it.
    public let json: JSON

    /// The progress that a daemon wrote as `json`, or nil where it is none.
    public init?(_ json: JSON) {
        guard let completed = json["completed"]?.int, let unit = json["unit"]?.string else { return nil }
        self.completed = Int64(completed)
        self.unit = unit
        total = json["total"]?.int.map(Int64.init)
        fraction = json["fraction"]?.double
        rate = json["rate"]?.double
        eta = json["eta"]?.double
        self.json = json
    }
}
