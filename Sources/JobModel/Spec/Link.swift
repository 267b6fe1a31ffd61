/// What a link runs: a source, a value that is there already, or a failure.
package struct Step: Sendable, Hashable {
    package enum Action: Sendable, Hashable {
        /// The source as it was written, expressions and all.
        case source(JSON)
        case `return`(JSON)
        /// The object with `kind` and `message`, as it was written.
        case `throw`(JSON)
    }

    package let action: Action
    /// The source's type, or nil for a step without one.
    package let type: SourceType?
    /// Bounds one attempt, in seconds.
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

    /// A step that runs a source whose type was read already.
    init(source: JSON, type: SourceType) {
        action = .source(source)
        self.type = type
        timeout = nil
        retry = nil
    }
}

/// One callback pair of a job's chain.
package enum Link: Sendable, Hashable {
    /// Either branch may be left out; `on` names the kinds of failure that the second one handles.
    case pair(then: Step?, fail: Step?, on: Set<String>?)
    case both(Step)
    case finally(Step)
}

/// What a source, a link or a job ended with.
package typealias Outcome = Result<JSON, JobError>
