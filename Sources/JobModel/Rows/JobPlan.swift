/// The parts of a spec that the core needs, built once on admission: each link's step types, bounds and retries.
package struct JobPlan: Sendable, Hashable {
    /// One step of a link.
    package struct Step: Sendable, Hashable {
        /// The source's type; nil for `return` and `throw`.
        package var source: SourceType?
        /// The maximum duration of an attempt, in seconds.
        package var timeout: Double?
        package var retry: RetryPolicy
        /// Whether a lost attempt is repeated after a restart of the daemon: not for POST, PATCH and programs without
        /// retries.
        package var isRepeatable: Bool

        package init(source: SourceType?, timeout: Double?, retry: RetryPolicy, isRepeatable: Bool = true) {
            self.source = source
            self.timeout = timeout
            self.retry = retry
            self.isRepeatable = isRepeatable
        }
    }

    /// One callback pair of the chain.
    package enum Link: Sendable, Hashable {
        /// `on` lists the failure kinds that `fail` handles; nil for all.
        case pair(then: Step?, fail: Step?, on: Set<String>?)
        case both(Step)
        case finally(Step)

        package var steps: [Step] {
            switch self {
            case .pair(let then, let fail, _): [then, fail].compactMap(\.self)
            case .both(let step), .finally(let step): [step]
            }
        }
    }

    package let source: Step
    package let links: [Link]
    /// The maximum time from submission, or from a manual retry, in seconds.
    package let deadline: Double?

    package init(source: Step, links: [Link], deadline: Double?) {
        self.source = source
        self.links = links
        self.deadline = deadline
    }

    /// Returns the step that link `number` runs for its input; link 0 is the source.
    package func step(_ number: Int, for incoming: Carried?) -> Step? {
        guard number > 0 else { return source }
        guard links.indices.contains(number - 1), let incoming else { return nil }
        switch (links[number - 1], incoming) {
        case (.pair(let then, _, _), .success): return then
        case (.pair(_, let fail, let kinds), .failure(let error)):
            guard let kinds, !kinds.contains(error.kind.rawValue) else { return fail }
            return nil
        case (.both(let step), _), (.finally(let step), _): return step
        }
    }

    package func isFinally(_ number: Int) -> Bool {
        guard links.indices.contains(number - 1), case .finally = links[number - 1] else { return false }
        return true
    }

    private func steps(_ number: Int) -> [Step] {
        number == 0 ? [source] : links.indices.contains(number - 1) ? links[number - 1].steps : []
    }

    /// Whether the result of a link may have a body: that of a response, or a program's output.
    package func mayHaveBody(_ number: Int) -> Bool {
        steps(number).contains { [.url, .upload, .program, .job].contains($0.source) }
    }

    package func isProgram(_ number: Int) -> Bool { steps(number).contains { $0.source == .program } }

    /// Whether a step has such a source.
    private func has(_ isMeant: (SourceType) -> Bool) -> Bool {
        func isMeantBy(_ step: Step) -> Bool { step.source.map(isMeant) ?? false }
        return isMeantBy(source) || links.contains { $0.steps.contains(where: isMeantBy) }
    }

    package var downloads: Bool { has { $0 == .download } }
    /// Whether it or its children may wait for other jobs.
    package var mayDepend: Bool { has(\.mayDepend) }
    /// Whether a step makes children.
    package var hasList: Bool { has(\.hasChildren) }
}
