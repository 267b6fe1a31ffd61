package import JobModel

/// A job to submit, its spec checked by ``Admission``; an object, as it passes through several arrays.
package final class NewJob: Sendable {
    /// The parts of a spec that the core's decisions depend on.
    package struct Terms: Sendable, Equatable {
        package let lasting: JobTerms
        package let start: JobSettings.Start
        package let isHeld: Bool
        package let notifies: Bool
        /// The host (name and port) of its source, if known.
        package let host: String?
        /// The node on which it runs; nil for any.
        package let node: String?

        package init(_ spec: JobSpec, host: String?) {
            lasting = spec.terms
            (isHeld, notifies) = (spec.isHeld, spec.notifies)
            start = spec.delay.map(JobSettings.Start.after) ?? spec.notBefore.map(JobSettings.Start.at) ?? .now
            self.host = host
            node = spec.node
        }
    }

    package let terms: Terms
    package let document: NewJobRow.Document
    package let digest: UInt64
    /// The outcome of its source, if the spec contains it.
    package let immediate: Carried?
    /// The queues that its children name.
    package let queues: [NamedQueue]
    /// The jobs that the spec waits for.
    package let jobs: [NamedJob]
    /// Whether it, or a child, uploads a file, which is on the node where the spec was given.
    package let uploads: Bool
    /// The subscription that reports the job's later changes.
    package let subscription: SubscriptionID?

    package init(
        terms: Terms, document: NewJobRow.Document, digest: UInt64 = 0, immediate: Carried? = nil,
        queues: [NamedQueue] = [], jobs: [NamedJob] = [], uploads: Bool, subscription: SubscriptionID? = nil
    ) {
        self.terms = terms
        self.document = document
        self.digest = digest
        self.immediate = immediate
        self.queues = queues
        self.jobs = jobs
        self.uploads = uploads
        self.subscription = subscription
    }
}

/// A child of a list, made by the engine.
package struct NewChildRow: Sendable {
    package let index: Int
    /// A child that cannot be made failed with this error before it began.
    package let terms: Result<NewJob.Terms, JobError>
    package let document: NewJobRow.Document
    package let specSize: Int

    package init(
        index: Int, terms: Result<NewJob.Terms, JobError>, document: NewJobRow.Document, specSize: Int? = nil
    ) {
        self.index = index
        self.terms = terms
        self.document = document
        self.specSize = specSize ?? Int(clamping: document.size)
    }
}

extension NewChildRow {
    /// The file that contains its item.
    var blob: BlobReference? { if case .item(let item) = document { item.blob } else { nil } }
}

extension JobRow {
    /// Creates the initial row of a job.
    init(
        _ terms: NewJob.Terms, owner: UInt32, groups: CallerGroups?, parent: Parent?, deadline: SteadyTime?,
        specSize: Int, storedSpecSize: Int? = nil, at now: CoreMoment
    ) {
        self.init(
            owner: owner, groups: groups, parent: parent, terms: terms.lasting, specSize: specSize,
            storedSpecSize: storedSpecSize, createdAt: now.wall, state: .queued)
        (host, node) = (terms.host, terms.node)
        notifies = terms.notifies
        if terms.isHeld { state = .held } else { start(terms.start, at: now) }
        // It may be later than its parent's, which may be extended: a stopped parent stops its children.
        self.deadline = terms.lasting.plan.deadline.map { now.steady(after: $0) } ?? deadline
    }
}
