/// How much of a job an answer shows, most first.
///
/// A job requested alone is shown whole, one among others in brief. If there is no room for that, less is shown, down
/// to some hundred bytes: every answer is bounded, whatever clients write into their jobs.
package enum JobDetail: Int, Sendable, CaseIterable, Comparable {
    /// All of it: the answer to `job.get`.
    case whole
    /// The last outcomes only.
    case lastOutcomes
    /// A long spec by its size: lists, snapshots and notifications.
    case brief
    /// Its result by its size, too.
    case noResult
    /// No causes of errors, either.
    case noCauses
    /// No spec, outcomes, tags, key and label, and only the first sentence of an error.
    case least

    package static func < (left: JobDetail, right: JobDetail) -> Bool { left.rawValue < right.rawValue }

    /// A longer spec, in bytes of JSON, is shown in brief by its size.
    package static let longestBriefSpec = 4 << 10
    static let mostOutcomes = 10

    /// The maximum size of a job with the least detail, in bytes.
    package static let leastSize = 704
}
