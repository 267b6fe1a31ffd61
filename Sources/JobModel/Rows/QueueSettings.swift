/// A queue's settings from the configuration or an administrator.
package struct QueueSettings: Sendable, Hashable {
    /// The maximum number of queues in a configuration, and in all when an administrator makes another.
    package static let most = 1000

    package var name: String
    /// Slots: sources that run at the same time.
    package var concurrency: Int
    /// The maximum number of slots per owner; nil for the daemon's default.
    package var perUser: Int?
    package var isSuspended: Bool

    package init(name: String, concurrency: Int, perUser: Int? = nil, isSuspended: Bool = false) {
        self.name = name
        self.concurrency = concurrency
        self.perUser = perUser
        self.isSuspended = isSuspended
    }
}
