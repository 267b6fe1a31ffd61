package import NIOCore

extension TimeAmount {
    /// The longest that a loop is told to wait: over a century of nanoseconds a deadline would not fit. Nobody waits for
    /// the difference.
    package static let century = TimeAmount.nanoseconds(3_000_000_000 * 1_000_000_000)

    /// So many seconds, at least none and at most a century; what is no number is none.
    package static func seconds(saturating seconds: Double) -> TimeAmount {
        guard seconds > 0 else { return .zero }
        return seconds >= 3_000_000_000 ? century : .nanoseconds(Int64(seconds * 1_000_000_000))
    }
}
