/// The immutable parts of a spec that the core uses; an object, as every read or change copies the row.
package final class JobTerms: Sendable {
    package let plan: JobPlan
    package let queue: String
    package let priority: Int
    /// Unique among the jobs of its owner; nil for a child.
    package let key: String?
    package let tags: [String]

    package init(plan: JobPlan, queue: String, priority: Int, key: String?, tags: [String]) {
        self.plan = plan
        self.queue = queue
        self.priority = priority
        self.key = key
        self.tags = tags
    }
}

extension JobTerms: Equatable {
    package static func == (left: JobTerms, right: JobTerms) -> Bool {
        left === right
            || left.plan == right.plan && left.queue == right.queue && left.priority == right.priority
                && left.key == right.key && left.tags == right.tags
    }
}
