/// How many jobs of one owner stand in one state in one queue, and what they take up on disk.
package struct JobCount: Sendable, Hashable {
    package let owner: UInt32
    package let queue: String
    package let state: JobState
    package let count: Int
    /// The sum of the jobs' stored sizes, in bytes.
    package let bytes: Int64

    package init(owner: UInt32, queue: String, state: JobState, count: Int, bytes: Int64 = 0) {
        self.owner = owner
        self.queue = queue
        self.state = state
        self.count = count
        self.bytes = bytes
    }
}
