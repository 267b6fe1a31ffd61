/// How much of a job an answer shows.
///
/// A job requested alone is shown whole, one among others in brief. If there is no room for that, less is shown, down
/// to some hundred bytes (``least``): every answer is bounded, whatever clients write into their jobs.
package struct JobDetail: Sendable, Hashable {
    /// The maximum size of a spec that is shown, in bytes of JSON, or nil; a longer one is shown by its size.
    var spec: Int?
    /// The number of outcomes shown, counted from the last; nil for all.
    var outcomes: Int?
    /// Whether the outcomes' errors include their causes.
    var hasCauses = true
    /// Whether a short result is shown.
    var hasResult = true
    /// Whether tags, key, label and more than an error's first sentence are shown.
    var hasTexts = true

    package static let longestBriefSpec = 4 << 10
    static let briefOutcomes = 10

    /// The detail of `job.get`.
    package static let whole = JobDetail()
    /// The detail of lists, snapshots and notifications.
    package static let brief = JobDetail(spec: longestBriefSpec, outcomes: briefOutcomes)

    /// The maximum size of a job with the least detail, in bytes.
    package static let least = 704

    package var withoutResult: JobDetail {
        var detail = self
        detail.hasResult = false
        return detail
    }

    /// The details to try if there is no room for this one, richest first.
    var lesser: [JobDetail] {
        var lesser: [JobDetail] = []
        var detail = self
        func add(_ change: (inout JobDetail) -> Void) {
            change(&detail)
            if lesser.last != detail { lesser.append(detail) }
        }
        add { $0.outcomes = Self.briefOutcomes }
        add { $0.hasCauses = false }
        add { $0.spec = Self.longestBriefSpec }
        add { $0.hasResult = false }
        add {
            $0.spec = 0
            $0.outcomes = 0
            $0.hasTexts = false
        }
        return lesser
    }
}
