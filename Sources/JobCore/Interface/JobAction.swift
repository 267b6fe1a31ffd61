package import JobModel

/// A change of a job that a user asks for.
package enum JobAction: Sendable, Hashable {
    case cancel
    case retry(from: RetryPoint)
    case remove
    case hold
    case release
    case set(JobSettings)
}

/// Where a manual retry begins.
package enum RetryPoint: String, Sendable, CaseIterable {
    case failed
    case start
}

/// New settings of a job; nil keeps a setting.
package struct JobSettings: Sendable, Hashable {
    /// When a job may start.
    package enum Start: Sendable, Hashable {
        case now
        /// Seconds from now.
        case after(Double)
        case at(Timestamp)
    }

    package var priority: Int?
    package var queue: String?
    package var start: Start?
    /// Seconds from now, or none.
    package var deadline: Double??
    /// Bytes per second of the job's downloads; 0 for no limit.
    package var rate: Int?
    package var label: String??
    package var tags: [String]?
    package var notifies: Bool?

    package init() {}

    /// Whether a running job takes these settings.
    var fitRunning: Bool { priority == nil && queue == nil && start == nil }
    var changeTerms: Bool {
        priority != nil || queue != nil || deadline != nil || label != nil || tags != nil
    }
}
