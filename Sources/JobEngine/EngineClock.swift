import Glibc
package import JobCore
import JobModel

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
