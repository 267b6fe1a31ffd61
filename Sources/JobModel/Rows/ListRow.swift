/// An open list of a running job: how far its children have come. A list that is over has no row.
package struct ListRow: Sendable, Hashable {
    package enum Phase: Int, Sendable, CaseIterable {
        /// A run makes the children; those that were made may run already.
        case making
        /// All children are made, and some have not ended.
        case open
        /// All children have ended, and a run composes the list's outcome.
        case gathering
    }

    /// The job whose present link it is.
    package let job: JobID
    /// Of this opening: a list that is opened again has another one. Children name it.
    package let id: Int64
    package let link: Int
    package var phase: Phase
    package let mode: ListMode
    /// How many children run at once; nil leaves it to the queues.
    package let concurrency: Int?
    /// How many children it is to have.
    package let total: Int
    package var made = 0
    /// Children that have ended, and how many of them failed or were cancelled.
    package var ended = 0
    package var failed = 0
    /// The child that decided the outcome before all had ended, by its index.
    package var decided: Int?
    /// Children that were let in and have not ended: at most ``concurrency``, but for those that a stop let pass.
    package var admitted = 0
    /// Bytes that ended children have moved.
    package var bytes: Int64 = 0
    /// What its children are made of together, where they have that in common.
    package let template: StoredValue?

    package init(
        job: JobID, id: Int64, link: Int, phase: Phase, mode: ListMode, concurrency: Int?, total: Int,
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

    /// Children that were made and have not ended.
    package var unfinished: Int { made - ended }
}
