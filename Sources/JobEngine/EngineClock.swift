import Foundation
package import JobModel

/// Where the engine gets the time of day and chance from; tests put their own in.
package struct EngineClock: Sendable {
    package var now: @Sendable () -> Timestamp
    /// A number from 0 ..< 1.
    package var random: @Sendable () -> Double

    package init(now: @escaping @Sendable () -> Timestamp, random: @escaping @Sendable () -> Double) {
        self.now = now
        self.random = random
    }

    package static let system = EngineClock(
        now: { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)) },
        random: { Double.random(in: 0..<1) })
}
