/// A job that the store removed, with what has to be cleaned up after it.
package struct RemovedJob: Sendable, Hashable {
    package let id: JobID
    package let owner: UInt32
    package let queue: String
    package let state: JobState
    /// The last link that ran; bodies can be left of each up to that.
    package let links: Int
    /// Its stored size, in bytes.
    package let size: Int64
    /// The checkpoints of its unfinished transfers.
    package let checkpoints: [JSON]

    package init(
        id: JobID, owner: UInt32, queue: String, state: JobState, links: Int, size: Int64 = 0, checkpoints: [JSON] = []
    ) {
        self.id = id
        self.owner = owner
        self.queue = queue
        self.state = state
        self.links = links
        self.size = size
        self.checkpoints = checkpoints
    }
}
