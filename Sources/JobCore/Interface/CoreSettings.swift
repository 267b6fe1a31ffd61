package import JobModel

/// What the configuration says to the core.
package struct CoreSettings: Sendable {
    package var limits = JobLimits()
    /// The queues there are at least.
    package var queues = [QueueSettings(name: "default", concurrency: 16)]
    /// A queue without a `perUser` of its own gives one owner at most this part of its slots, and at least one:
    /// 0.75 in a system instance, 1 in a user instance.
    package var ownersShare = 0.75
    /// Transfers from one host at once, over all jobs.
    package var perHost = 6
    /// The most seconds for which no request goes to a host because of its `Retry-After`.
    package var longestBackOff = 3600.0
    /// Lists of jobs without a parent that are open at once; each can have `limits.children` children.
    package var openLists = 256
    /// Seconds that a finished job is kept.
    package var retentionAge = 604_800.0
    /// Finished jobs that are kept.
    package var retentionCount = 100_000
    /// Bytes of finished jobs that are kept.
    package var retentionBytes: Int64 = 1 << 30
    /// Bytes of specs and results that one user may have stored.
    package var storedPerUser: Int64 = 1 << 30

    /// What the log says of jobs.
    package var jobLogging = JobLogging.none

    package init() {}

    /// The most slots that one owner gets of a queue.
    func perUser(_ queue: QueueSettings) -> Int {
        if let perUser = queue.perUser { return max(1, min(perUser, queue.concurrency)) }
        return max(1, Int((Double(queue.concurrency) * ownersShare).rounded(.down)))
    }
}
