/// How much of a job an answer tells.
///
/// A job that is asked for alone is shown whole, one among others in brief. Where there is no room for that, less of it
/// is shown, down to some hundred bytes (``least``): every answer is bounded, whatever a client wrote into its jobs.
package struct JobDetail: Sendable, Hashable {
    /// The longest spec that is told, in bytes of its JSON; nil for any. A longer one is told by its size.
    var spec: Int?
    /// How many outcomes are told, the last ones; nil for all.
    var outcomes: Int?
    /// Whether the outcomes' errors are told with the errors that they are made of.
    var hasCauses = true
    /// Whether a result is told where it is short enough.
    var hasResult = true
    /// Whether tags, key and label are told, and more of an error than its first sentence.
    var hasTexts = true

    package static let longestBriefSpec = 4 << 10
    static let briefOutcomes = 10

    /// As `job.get` tells it.
    package static let whole = JobDetail()
    /// As lists, snapshots and notifications tell it.
    package static let brief = JobDetail(spec: longestBriefSpec, outcomes: briefOutcomes)

    /// The most bytes that a job takes of which the least is told.
    package static let least = 704

    /// The same without a result.
    package var withoutResult: JobDetail {
        var detail = self
        detail.hasResult = false
        return detail
    }

    /// The details that are told instead where there is no room for this one, richest first.
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
