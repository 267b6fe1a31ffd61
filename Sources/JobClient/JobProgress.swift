public import JobModel

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
