/// The children that one link of a job makes, as they are stored when they begin.
package struct NewChildren: Sendable {
    /// The job that makes them, as it is now; it is saved with them.
    package let parent: Job
    /// The spec that all have in common, `item` and `index` still open; nil where each has a spec of its own.
    ///
    /// It is stored once, and a child is read by expanding it: a template of 900 KB with 3,000 items takes 900 KB.
    package let template: JSON?
    /// By ascending index.
    package let children: [NewChild]

    package init(parent: Job, template: JSON?, children: [NewChild]) {
        self.parent = parent
        self.template = template
        self.children = children
    }
}

/// What is stored of a child when it is made: what differs from its siblings, and what it is found by.
package struct NewChild: Sendable {
    package enum Body: Sendable {
        /// The `each` item, from which and the template the spec is made.
        case item(JSON)
        /// A spec of its own.
        case spec(JSON)
        /// A spec that is not valid; the child failed with this error before it began.
        case invalid(JobError)
    }

    package let index: Int
    package let body: Body
    package let queue: String
    package let priority: Int
    package let source: SourceType?
    package let state: JobState
    package let createdAt: Timestamp
    package let notBefore: Timestamp?
    package let deadlineAt: Timestamp?
    /// The host (name and port) that its source asks, where that is known.
    package let host: String?
    package let tags: [String]
    /// It waits for its list's own `concurrency`, so it is not among the ready jobs; the list starts it.
    package let isGated: Bool
    /// What it takes up on disk, in bytes.
    package let size: Int64

    package init(
        index: Int, body: Body, queue: String, priority: Int, source: SourceType?, state: JobState,
        createdAt: Timestamp, notBefore: Timestamp? = nil, deadlineAt: Timestamp? = nil, host: String? = nil,
        tags: [String] = [], isGated: Bool = false, size: Int64
    ) {
        self.index = index
        self.body = body
        self.queue = queue
        self.priority = priority
        self.source = source
        self.state = state
        self.createdAt = createdAt
        self.notBefore = notBefore
        self.deadlineAt = deadlineAt
        self.host = host
        self.tags = tags
        self.isGated = isGated
        self.size = size
    }
}
