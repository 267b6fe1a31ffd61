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

    /// The step that runs for what came in, or nil where the link passes it on.
    package func step(for incoming: Outcome) -> Step? {
        switch (self, incoming) {
        case (.pair(let then, _, _), .success): return then
        case (.pair(_, let fail, let kinds), .failure(let error)):
            guard let kinds, !kinds.contains(error.kind.rawValue) else { return fail }
            return nil
        case (.both(let step), _), (.finally(let step), _): return step
        }
    }

    /// Whether one of its steps has a source of this type.
    package func contains(_ type: SourceType) -> Bool {
        switch self {
        case .pair(let then, let fail, _): then?.type == type || fail?.type == type
        case .both(let step), .finally(let step): step.type == type
        }
    }

    package var isFinally: Bool {
        if case .finally = self { true } else { false }
    }
}

/// What a source, a link or a job ended with.
package typealias Outcome = Result<JSON, JobError>
