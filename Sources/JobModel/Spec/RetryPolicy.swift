/// The number and spacing of a failed source's retries.
package struct RetryPolicy: Sendable, Hashable {
    /// Retries after the first attempt, 0 to 1000.
    package var max: Int
    /// Seconds before the first retry.
    package var initial: Double
    /// The factor by which each delay grows.
    package var factor: Double
    /// The longest delay, in seconds.
    package var maxDelay: Double
    /// Whether a delay is random between 0 and its computed length.
    package var jitter: Bool

    /// The retries of idempotent requests, unless the configuration's `http.retry` or the spec says otherwise.
    package static let standard = RetryPolicy(max: 10, initial: 1, factor: 2, maxDelay: 300, jitter: true)
    package static let none = RetryPolicy(max: 0, initial: 1, factor: 2, maxDelay: 300, jitter: true)

    package init(max: Int, initial: Double, factor: Double, maxDelay: Double, jitter: Bool) {
        self.max = max
        self.initial = initial
        self.factor = factor
        self.maxDelay = maxDelay
        self.jitter = jitter
    }

    /// Returns the delay in seconds after failed attempt `attempt` (from 1); `random` is from 0 ..< 1.
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

    /// Reads the member `name`; omitted parts are those of `defaults`.
    init?(_ reader: MemberReader, _ name: String, defaults: RetryPolicy) throws(SpecError) {
        self = defaults
        if reader.isOpen(name) { return }
        guard let members = try reader.members(of: name) else { return nil }
        try members.allow(["max", "initial", "factor", "maxDelay", "jitter"])
        max = try members.integer("max", in: 0...1000) ?? max
        initial = try members.number("initial", in: 0...JobSpec.longest) ?? initial
        factor = try members.number("factor", in: 1...1000) ?? factor
        maxDelay = try members.number("maxDelay", in: 0...JobSpec.longest) ?? maxDelay
        jitter = try members.flag("jitter") ?? jitter
    }
}
