/// A selection of jobs, and their order.
package struct JobFilter: Sendable, Equatable {
    package enum Order: String, Sendable, CaseIterable {
        case newest
        case oldest
    }

    /// The states to include; empty for all.
    package var states: Set<JobState> = []
    package var queue: String?
    package var tag: String?
    /// The type of the job's own source.
    package var source: SourceType?
    /// The parent whose children to list; nil for jobs without a parent.
    package var parent: JobID?
    /// The uid whose jobs to list; nil for all.
    package var owner: UInt32?
    /// The job to continue after, in the requested order.
    package var after: JobID?
    package var limit = 100
    package var order = Order.newest

    package init() {}
}
