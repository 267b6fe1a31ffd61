import Glibc
package import JobCore
package import JobModel

/// What the configuration says to the engine.
package struct EngineSettings: Sendable {
    package var core = CoreSettings()
    /// The directory of bodies that are too large for a result.
    package var bodies: String
    /// Bytes on the disk of the bodies, which is the state's, below which no job is accepted.
    package var minimumFree: Int64 = 0
    /// Where the rules of zones are.
    package var zones = ZoneFiles()
    package var limits: JobLimits { core.limits }

    package init(bodies: String) {
        self.bodies = bodies
    }
}

/// Where the engine gets the time and random numbers from; tests put their own in.
package struct EngineClock: Sendable {
    package var now: @Sendable () -> CoreTime
    /// A number from 0 ..< 1.
    package var random: @Sendable () -> Double

    package init(now: @escaping @Sendable () -> CoreTime, random: @escaping @Sendable () -> Double) {
        self.now = now
        self.random = random
    }

    package static let system = EngineClock(
        now: {
            CoreTime(
                wall: Timestamp(milliseconds: nanoseconds(of: CLOCK_REALTIME) / 1_000_000),
                monotonic: nanoseconds(of: CLOCK_MONOTONIC))
        },
        random: { Double.random(in: 0..<1) })

    private static func nanoseconds(of clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec).saturatingMultiplied(by: 1_000_000_000).saturatingAdding(Int64(time.tv_nsec))
    }
}
