/// A selection of jobs, and their order.
package struct JobFilter: Sendable, Equatable {
    package enum Order: String, Sendable, CaseIterable {
        case newest, oldest
    }

    /// The states to include; empty for all.
    package var states: Set<JobState> = []
    package var queue: String?
    package var tag: String?
    package var source: SourceType?
    /// The parent whose children to list; nil for jobs without a parent.
    package var parent: JobID?
    /// The uid whose jobs to list; nil for all.
    package var owner: UInt32?
    package var key: String?
    /// A part of the label.
    package var label: String?
    /// The first and last id to include.
    package var ids: ClosedRange<JobID>?
    /// Jobs submitted at this time or later, and before the other.
    package var since: Timestamp?
    package var before: Timestamp?
    /// The job to continue after, in the requested order.
    package var after: JobID?
    package var limit = 100
    package var order = Order.newest

    package init() {}
}
