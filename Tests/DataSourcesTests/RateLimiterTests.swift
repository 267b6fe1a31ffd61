@testable import DataSources
import NIOCore
import Testing

/// Bytes per second, of one transfer or of several.
@Suite struct RateLimiterTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    @Test func bytes_areDue_inTheOrderInWhichTheyWereTaken() {
        let limiter = RateLimiter(bytesPerSecond: 100)
        #expect(limiter.take(100, at: start) == .seconds(1))
        #expect(limiter.take(100, at: start + .milliseconds(500)) == .milliseconds(1500))
        // What was not taken in time is not saved up.
        #expect(limiter.take(100, at: start + .seconds(60)) == .seconds(1))
    }

    @Test func limit_canChange_whileBytesWait() {
        let limiter = RateLimiter(bytesPerSecond: 1)
        #expect(limiter.take(1000, at: start) == .seconds(1000))
        limiter.set(bytesPerSecond: 1000)
        #expect(limiter.take(1000, at: start) == .seconds(2))
        limiter.set(bytesPerSecond: nil)
        #expect(limiter.take(1_000_000, at: start) == nil && limiter.largestPiece == .max)
    }
}
