/// Which jobs to list, and in what order.
package struct JobFilter: Sendable, Equatable {
    package enum Order: String, Sendable, CaseIterable {
        case newest
        case oldest
    }

    /// Empty for every state.
    package var states: Set<JobState> = []
    package var queue: String?
    package var tag: String?
    /// The type of the job's own source.
    package var source: SourceType?
    /// Its children; without one, only jobs that have no parent.
    package var parent: JobID?
    /// Only jobs of this uid.
    package var owner: UInt32?
    /// Only jobs behind this one, in the order asked for.
    package var after: JobID?
    package var limit = 100
    package var order = Order.newest

    package init() {}
}
