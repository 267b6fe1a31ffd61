package import JobModel

/// What the configuration says to the core.
package struct CoreSettings: Sendable {
    package var limits = JobLimits()
    /// The queues there are at least.
    package var queues = [QueueSettings(name: "default", concurrency: 16)]
    /// An owner gets at most this part of a queue's slots, or of a host's permits, and at least one, where the queue says
    /// nothing else: 0.75 in a system instance, 1 in a user instance.
    package var ownersShare = 0.75
    /// Transfers from one host at once, over all jobs.
    package var perHost = 6
    /// The most seconds for which no request of an owner goes to a host because of its `Retry-After`.
    package var longestBackOff = 3600.0
    /// Seconds that a finished job is kept.
    package var retentionAge = 604_800.0
    /// Finished jobs that are kept.
    package var retentionCount = 100_000
    /// Bytes of finished jobs that are kept.
    package var retentionBytes: Int64 = 1 << 30
    /// Bytes that one user may have stored.
    package var storedPerUser: Int64 = 1 << 30
    /// What the log says of jobs.
    package var jobLogging = JobLogging.none

    package init() {}

    /// The most slots that one owner gets of a queue.
    func perUser(_ queue: QueueSettings) -> Int {
        if let perUser = queue.perUser { return max(1, min(perUser, queue.concurrency)) }
        return share(of: queue.concurrency)
    }

    /// The most permits that one owner gets of a host.
    var perHostAndUser: Int { share(of: perHost) }

    private func share(of all: Int) -> Int {
        // Below four a part that stays free would be too much of it.
        all < 4 ? max(1, all) : max(1, Int((Double(all) * ownersShare).rounded(.down)))
    }
}
