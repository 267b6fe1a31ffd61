import JobProtocol

/// A `job.submit` on its way.
struct Submit: Sendable {
    let request: Request
    /// Gathers the answers of the batch that it stands in; nil for a call with a line of its own.
    let batch: Replies?
    /// What it takes in memory, in bytes that are counted until it is answered.
    let cost: Int
}
