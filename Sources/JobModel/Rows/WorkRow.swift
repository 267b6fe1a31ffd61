/// A piece of work that a round decided and did not end: it outlives a crash, and goes on where it stood.
package struct WorkRow: Sendable, Hashable {
    package enum Kind: Int, Sendable, CaseIterable {
        /// The unfinished children of a list are to be cancelled; `position` is the last one that was, by its id.
        case cancelChildren
        /// A finished root job is to be removed with all below it.
        case removeTree
        /// The children that a job's links from `position` on have made are to be removed, so that it can run again.
        case removeChildren
        /// What transfers of a job's links from `position` on have left is to be removed; its files are named in `payload`.
        case removeParts
    }

    /// 0 until it is stored.
    package var id: Int64
    package let kind: Kind
    /// The job that it is about, which may be gone.
    package let job: JobID
    package let owner: UInt32
    /// The list (``ListRow/id``) whose children are meant; 0 for others.
    package let list: Int64
    package var position: Int64
    /// What files are to be removed, as transfers wrote it down.
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
