/// The action of a link: a source, a given value, or a failure.
package struct Step: Sendable, Hashable {
    package enum Action: Sendable, Hashable {
        /// The source as written, with expressions.
        case source(JSON)
        case `return`(JSON)
        /// The object with `kind` and `message`, as written.
        case `throw`(JSON)
    }

    package let action: Action
    /// The source's type; nil for a step without one.
    package let type: SourceType?
    /// The bound on one attempt, in seconds.
    package var timeout: Double?
    package var retry: RetryPolicy?

    package init(_ action: Action, timeout: Double? = nil, retry: RetryPolicy? = nil) {
        self.action = action
        if case .source(let source) = action {
            type = source["type"]?.string.flatMap(SourceType.init(rawValue:))
        } else {
            type = nil
        }
        self.timeout = timeout
        self.retry = retry
    }

    /// Creates a step for a source whose type is known.
    init(source: JSON, type: SourceType) {
        action = .source(source)
        self.type = type
        timeout = nil
        retry = nil
    }
}

/// One callback pair of a job's chain.
package enum Link: Sendable, Hashable {
    /// Either branch may be omitted; `on` lists the failure kinds that `fail` handles.
    case pair(then: Step?, fail: Step?, on: Set<String>?)
    case both(Step)
    case finally(Step)
}

/// The outcome of a source, a link or a job.
package typealias Outcome = Result<JSON, JobError>
