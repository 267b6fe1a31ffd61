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
