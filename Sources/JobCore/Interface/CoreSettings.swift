package import JobModel

/// The core's part of the configuration.
package struct CoreSettings: Sendable {
    package var limits = JobLimits()
    /// The configured queues.
    package var queues = [QueueSettings(name: "default", concurrency: 16)]
    /// The largest fraction of a queue's slots or a host's permits for one owner, unless the queue sets a limit.
    /// At least one slot is always allowed. 0.75 in a system instance, 1 in a user instance.
    package var ownersShare = 0.75
    /// Concurrent transfers from one host, over all jobs.
    package var perHost = 6
    /// The longest pause, in seconds, that a host's `Retry-After` imposes on an owner.
    package var longestBackOff = 3600.0
    /// Seconds to keep a finished job.
    package var retentionAge = 604_800.0
    /// The most finished jobs to keep.
    package var retentionCount = 100_000
    /// The most bytes of finished jobs to keep.
    package var retentionBytes: Int64 = 1 << 30
    /// The most stored bytes per user.
    package var storedPerUser: Int64 = 2 << 30
    /// The name of this node among those that share the jobs; nil if it is alone.
    package var node: String?
    package var jobLogging = JobLogging.none

    package init() {}

    /// Returns the most slots of a queue for one owner.
    func perUser(_ queue: QueueSettings) -> Int {
        if let perUser = queue.perUser { return max(1, min(perUser, queue.concurrency)) }
        return share(of: queue.concurrency)
    }

    /// The most permits of a host for one owner.
    var perHostAndUser: Int { share(of: perHost) }

    private func share(of all: Int) -> Int {
        // Below four, the reserved part would be too large a fraction.
        all < 4 ? max(1, all) : max(1, Int((Double(all) * ownersShare).rounded(.down)))
    }
}
