/// How a queue runs, as the configuration or an administrator says.
package struct QueueSettings: Sendable, Hashable {
    /// Queues that a configuration can make, and that there are at most where an administrator makes another.
    package static let most = 1000

    package var name: String
    /// Slots: jobs whose source works at the same time.
    package var concurrency: Int
    /// The most slots that one owner may have at a time; nil for the daemon's default.
    package var perUser: Int?
    package var isSuspended: Bool

    package init(name: String, concurrency: Int, perUser: Int? = nil, isSuspended: Bool = false) {
        self.name = name
        self.concurrency = concurrency
        self.perUser = perUser
        self.isSuspended = isSuspended
    }
}
