import JobModel
import Testing

@Suite struct RetryPolicyTests {
    @Test func standard_isWhatTheProtocolShows() {
        #expect(
            RetryPolicy.standard.json.description
                == #"{"max":10,"initial":1,"factor":2,"maxDelay":300,"jitter":true}"#)
    }

    @Test(arguments: [
        (1, 1), (2, 2), (3, 4), (4, 8), (9, 256), (10, 300), (11, 300), (1001, 300), (0, 1), (-1, 1),
    ])
    func delay_growsByItsFactor_upToTheLongest(_ attempt: Int, _ delay: Double) {
        var policy = RetryPolicy.standard
        policy.jitter = false
        #expect(policy.delay(afterAttempt: attempt, random: 0.3) == delay)
        policy.jitter = true
        #expect(policy.delay(afterAttempt: attempt, random: 0) == 0)
        #expect(policy.delay(afterAttempt: attempt, random: 0.25) == delay / 4)
    }

    @Test func delay_isFinite_whateverThePolicy() {
        let largest = RetryPolicy(max: 1000, initial: 315_360_000, factor: 1000, maxDelay: 315_360_000, jitter: false)
        #expect(largest.delay(afterAttempt: 1000, random: 0.999) == 315_360_000)
        let none = RetryPolicy(max: 1000, initial: 0, factor: 1000, maxDelay: 60, jitter: true)
        #expect(none.delay(afterAttempt: 1000, random: 0.999) == 0)
        let short = RetryPolicy(max: 1, initial: 5, factor: 2, maxDelay: 1, jitter: false)
        #expect(short.delay(afterAttempt: 1, random: 0) == 1)
        let even = RetryPolicy(max: 1, initial: 5, factor: 1, maxDelay: 60, jitter: false)
        #expect(even.delay(afterAttempt: 900, random: 0) == 5)
    }
}
