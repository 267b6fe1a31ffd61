@testable import DataSources
import NIOCore
import Testing

/// Bytes per second, of one transfer or of several.
@Suite struct RateLimiterTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    private func take(_ count: Int, _ limiter: inout RateLimiter.State, at now: NIODeadline) -> TimeAmount? {
        let place = limiter.take(count, at: now)
        return limiter.pause(until: place, at: now)
    }

    @Test func bytes_areDue_inTheOrderInWhichTheyWereTaken() {
        var limiter = RateLimiter.State(rate: 100)
        #expect(take(100, &limiter, at: start) == .seconds(1))
        #expect(take(100, &limiter, at: start + .milliseconds(500)) == .milliseconds(1500))
        // What was not taken in time is not saved up.
        #expect(take(100, &limiter, at: start + .seconds(60)) == .seconds(1))
    }

    @Test func limit_canChange_whileBytesWait() {
        var limiter = RateLimiter.State(rate: 1)
        #expect(take(1000, &limiter, at: start) == .seconds(1000))
        limiter.rate = 1000
        #expect(take(1000, &limiter, at: start) == .seconds(2))
        limiter.rate = nil
        #expect(take(1_000_000, &limiter, at: start) == nil)
    }
}
