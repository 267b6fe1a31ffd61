/// What an administrator set for a queue.
package struct QueueSettings: Sendable, Hashable {
    package var name: String
    package var concurrency: Int
    package var isSuspended: Bool

    package init(name: String, concurrency: Int, isSuspended: Bool = false) {
        self.name = name
        self.concurrency = concurrency
        self.isSuspended = isSuspended
    }
}
