package import JobModel

/// How many jobs of one owner stand in one state in one queue.
package struct JobCount: Sendable, Hashable {
    package let owner: UInt32
    package let queue: String
    package let state: JobState
    package let count: Int

    package init(owner: UInt32, queue: String, state: JobState, count: Int) {
        self.owner = owner
        self.queue = queue
        self.state = state
        self.count = count
    }
}
