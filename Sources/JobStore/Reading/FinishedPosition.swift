import JobModel

/// A position among the finished root jobs, in the order of their ends.
struct FinishedPosition: Sendable, Equatable {
    let finishedAt: Timestamp
    /// Tells apart what ended in the same millisecond; 0 comes before all of it.
    let id: JobID
}
