/// The parts of a spec that the core uses; an object, as every read or change copies the row, and these rarely change.
package final class JobTerms: Sendable {
    package let plan: JobPlan
    package let queue: String
    /// Higher starts first; -1000 to 1000.
    package let priority: Int
    /// Unique among the jobs of its owner; nil for a child.
    package let key: String?
    /// Whether the key stays taken after the end of the job, until its removal.
    package let keepsKey: Bool
    package let tags: [String]
    package let label: String?

    package init(
        plan: JobPlan, queue: String, priority: Int, key: String?, keepsKey: Bool = true, tags: [String],
        label: String? = nil
    ) {
        self.plan = plan
        self.queue = queue
        self.priority = priority
        self.key = key
        self.keepsKey = keepsKey
        self.tags = tags
        self.label = label
    }
}

extension JobTerms: Equatable {
    package static func == (left: JobTerms, right: JobTerms) -> Bool {
        left === right
            || left.plan == right.plan && left.queue == right.queue && left.priority == right.priority
                && left.key == right.key && left.keepsKey == right.keepsKey && left.tags == right.tags
                && left.label == right.label
    }
}
