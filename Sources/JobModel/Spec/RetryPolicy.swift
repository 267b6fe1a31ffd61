/// How often and how far apart a failed source is tried again.
package struct RetryPolicy: Sendable, Hashable {
    /// Retries after the first attempt, 0 to 1000.
    package var max: Int
    /// Seconds before the first retry.
    package var initial: Double
    /// The factor by which each further pause is longer.
    package var factor: Double
    /// The longest pause in seconds.
    package var maxDelay: Double
    /// Whether a pause is drawn at random between 0 and its computed length.
    package var jitter: Bool

    package static let standard = RetryPolicy(max: 4, initial: 0.5, factor: 2, maxDelay: 60, jitter: true)

    package init(max: Int, initial: Double, factor: Double, maxDelay: Double, jitter: Bool) {
        self.max = max
        self.initial = initial
        self.factor = factor
        self.maxDelay = maxDelay
        self.jitter = jitter
    }

    /// The pause in seconds after attempt `attempt` (from 1) failed; `random` is drawn from 0 ..< 1.
    package func delay(afterAttempt attempt: Int, random: Double) -> Double {
        var delay = initial
        for _ in 1..<Swift.max(1, attempt) where delay < maxDelay { delay *= factor }
        delay = min(delay, maxDelay)
        return jitter ? delay * random : delay
    }

    package var json: JSON {
        [
            "max": JSON(max), "initial": JSON(initial), "factor": JSON(factor), "maxDelay": JSON(maxDelay),
            "jitter": .bool(jitter),
        ]
    }
}

extension RetryPolicy {
    /// No retry, with the standard's pauses.
    package static let none = RetryPolicy(
        max: 0, initial: RetryPolicy.standard.initial, factor: RetryPolicy.standard.factor,
        maxDelay: RetryPolicy.standard.maxDelay, jitter: RetryPolicy.standard.jitter)
}
