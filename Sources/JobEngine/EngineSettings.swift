package import JobModel

/// What the configuration says to the engine.
package struct EngineSettings: Sendable {
    package var limits = JobLimits()
    /// The queues there are at least, by name.
    package var queues: [String: Int] = ["default": 16]
    /// Transfers from one host at once, over all jobs.
    package var perHost = 6
    /// Lists of jobs without a parent that are open at once; each can have `limits.children` children.
    package var openLists = 256
    /// Timers that run at once; each takes room in memory.
    package var openTimers = 100_000
    /// Seconds that a finished job is kept.
    package var retentionAge = 604_800.0
    /// Finished jobs that are kept.
    package var retentionCount = 100_000
    /// The folder of bodies that are too large for a result.
    package var bodies: String

    package init(bodies: String) {
        self.bodies = bodies
    }
}
