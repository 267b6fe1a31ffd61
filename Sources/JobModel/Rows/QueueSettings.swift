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
    package var startRate: StartRate?
    /// The bytes per second of all transfers together; nil for no limit.
    package var byteRate: Int?

    package init(
        name: String, concurrency: Int = 16, perUser: Int? = nil, isSuspended: Bool = false,
        startRate: StartRate? = nil, byteRate: Int? = nil
    ) {
        self.name = name
        self.concurrency = concurrency
        self.perUser = perUser
        self.isSuspended = isSuspended
        self.startRate = startRate
        self.byteRate = byteRate
    }
}

/// The most sources of a queue that begin in any period of some seconds.
package struct StartRate: Sendable, Hashable {
    /// 1 to ``most``.
    package var count: Int
    /// More than 0, at most a day.
    package var seconds: Double

    /// Bounds the starts that a queue remembers.
    package static let most = 10_000

    package init(count: Int, seconds: Double) {
        self.count = count
        self.seconds = seconds
    }
}

/// What administrators set of a queue; nil leaves a setting to the configuration.
package struct QueueOverrides: Sendable, Hashable {
    package var concurrency: Int?
    package var perUser: Int?
    package var isSuspended: Bool?
    package var startRate: StartRate?
    package var byteRate: Int?

    package init() {}

    package func applied(to settings: QueueSettings) -> QueueSettings {
        QueueSettings(
            name: settings.name, concurrency: concurrency ?? settings.concurrency,
            perUser: perUser ?? settings.perUser, isSuspended: isSuspended ?? settings.isSuspended,
            startRate: startRate ?? settings.startRate, byteRate: byteRate ?? settings.byteRate)
    }
}
