package import JobCore
package import JobModel

/// What the configuration says to the engine.
package struct EngineSettings: Sendable {
    package var core = CoreSettings()
    /// The directory of bodies that are too large for a result.
    package var bodies: String
    /// Bytes on the disk of the bodies, which is the state's, below which no job is accepted.
    package var minimumFree: Int64 = 0
    package var limits: JobLimits { core.limits }

    package init(bodies: String) {
        self.bodies = bodies
    }
}
