/// An open list of a running job and its children's progress; a finished list has no row.
package struct ListRow: Sendable, Hashable {
    package enum Phase: Int, Sendable, CaseIterable {
        /// A run makes the children; some may already run.
        case making
        /// All children are made; some have not ended.
        case open
        /// All children have ended; a run composes the list's outcome.
        case gathering
    }

    /// The job whose current link it is.
    package let job: JobID
    /// The number of this opening, which children refer to; reopening a list gives it another. 0 until it is open.
    package var id: Int64
    package let link: Int
    package var phase: Phase
    package let mode: ListMode
    /// The number of children that run at once; nil leaves it to the queues.
    package let concurrency: Int?
    /// The planned number of children.
    package let total: Int
    package var made = 0
    /// Children that have ended, and those of them that failed or were cancelled.
    package var ended = 0
    package var failed = 0
    /// The index of the child that decided the outcome before all had ended.
    package var decided: Int?
    /// Children admitted and not ended: at most ``concurrency``, except those that a stop let pass.
    package var admitted = 0
    /// Bytes moved by ended children.
    package var bytes: Int64 = 0
    /// The template that its children share, if any.
    package let template: StoredValue?

    package init(
        job: JobID, id: Int64 = 0, link: Int, phase: Phase = .making, mode: ListMode, concurrency: Int?, total: Int,
        template: StoredValue?
    ) {
        self.job = job
        self.id = id
        self.link = link
        self.phase = phase
        self.mode = mode
        self.concurrency = concurrency
        self.total = total
        self.template = template
    }

    package var unfinished: Int { made - ended }
}
