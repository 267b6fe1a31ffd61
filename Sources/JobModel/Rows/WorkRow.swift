/// Work that a round started and did not finish; it survives a crash and resumes where it stopped.
package struct WorkRow: Sendable, Hashable {
    package enum Kind: Int, Sendable, CaseIterable {
        /// Cancels a list's unfinished children; `position` is the id of the last one cancelled.
        case cancelChildren
        /// Removes a finished root job with all its descendants.
        case removeTree
        /// Removes the children of a job's links from `position` on, so that it can run again.
        case removeChildren
        /// Removes the leftovers of transfers of a job's links from `position` on; `payload` names the files.
        case removeParts
        /// Passes the outcome of an ended job to the jobs that wait for it; `position` is the last of them.
        case tellDependents
        /// Drops the dependencies of an ended job.
        case dropDependencies
    }

    /// 0 until stored.
    package var id: Int64
    package let kind: Kind
    /// The job concerned, which may be gone.
    package let job: JobID
    package let owner: UInt32
    /// The list (``ListRow/id``) whose children are concerned; otherwise 0.
    package let list: Int64
    package var position: Int64
    /// The files to remove, as transfers recorded them.
    package let payload: [UInt8]

    package init(
        id: Int64 = 0, kind: Kind, job: JobID, owner: UInt32, list: Int64 = 0, position: Int64 = 0,
        payload: [UInt8] = []
    ) {
        self.id = id
        self.kind = kind
        self.job = job
        self.owner = owner
        self.list = list
        self.position = position
        self.payload = payload
    }
}
