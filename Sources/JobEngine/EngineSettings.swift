import Glibc
package import JobModel
package import JobCore

package enum StoreKind: String, Sendable {
    case sqlite
    case postgresql
}

/// The configuration of the engine.
package struct EngineSettings: Sendable {
    package var core = CoreSettings()
    /// Whether the daemon serves all users, as `server.info` tells.
    package var isSystemInstance = true
    /// Where the jobs are, as `server.info` tells.
    package var store = StoreKind.sqlite
    /// The daemon among those that share the jobs.
    package var node = NodeDescription(name: "localhost")
    /// The bytes that new downloads leave free.
    package var minimumFree: Int64 = 0
    /// The bytes that must be free on the disk of the state for jobs to be accepted: less, as downloads wait first.
    package var minimumForJobs: Int64 { minimumFree / 2 }
    /// The program that is told the ends of jobs with `notify`.
    package var finishedHook: ProgramSpec.Subject?
    package var limits: JobLimits { core.limits }

    package init() {}
}

/// Gives the engine the time; tests have their own.
package struct EngineClock: Sendable {
    package var wall: @Sendable () -> Timestamp
    package var steady: @Sendable () -> SteadyTime

    /// The system's clocks; the steady clock is `anchor`, from the store, plus the time since the boot.
    package static func system(steadyAnchor anchor: SteadyTime) -> EngineClock {
        EngineClock(
            wall: { .now },
            steady: {
                var time = timespec()
                clock_gettime(CLOCK_BOOTTIME, &time)
                return anchor.saturatingAdding(Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
            })
    }

    func moment() -> CoreMoment { CoreMoment(wall: wall(), steady: steady()) }
}
