import JobModel
import Testing

@Suite struct JobErrorTests {
    @Test func error_hasItsMembers_asTheProtocolSays() {
        var error = JobError(.http, "No.", retryable: true, http: JobError.response(status: 503, reason: "Busy"))
        error.link = 2
        error.attempts = 5
        error.retryAfter = 7
        #expect(
            error.json.description
                == #"{"kind":"http","message":"No.","retryable":true,"link":2,"attempts":5,"#
                + #""http":{"status":503,"reason":"Busy"}}"#)
    }

    /// Every step of a transfer that can fail has room for an error while it waits, and so has every job in memory.
    @Test func error_takesOneWord_whateverItTells() {
        #expect(MemoryLayout<JobError?>.size == MemoryLayout<Int>.size)
    }

    @Test func error_readsBack_withItsCausesAndFailures() {
        var leaf = JobError(.timeout, "Slow.", retryable: true)
        leaf.job = 7
        leaf.index = 0
        var cause = JobError(.list, "All.")
        cause.failures = [leaf, JobError(.tls, "y", http: JobError.response(status: 0, reason: ""))]
        cause.job = 1 << 60
        cause.index = 3
        cause.failuresOmitted = 5
        #expect(
            cause.json.object?.names == [
                "kind", "message", "retryable", "link", "attempts", "job", "index", "failures", "failuresOmitted",
            ])
        var error = JobError(.list, "One.")
        error.cause = cause
        error.link = 4
        #expect(error.json.object?.names.last == "cause")
        let again = JobError(json: error.json)
        #expect(again == error)
        #expect(again.cause?.failures?.first == leaf)
        #expect(again.cause?.job == 1 << 60)
        error.cause = nil
        #expect(error.cause == nil && JobError(json: error.json) == error)
    }

    @Test(arguments: ["{}", "null", "[]", "1", #"{"kind":5,"message":null,"failures":{}}"#])
    func error_hasDefaults_forWhatWasNotWritten(_ text: String) throws {
        let error = JobError(json: try JSON(parsing: text))
        #expect(error.kind == .internal && !error.message.isEmpty && !error.isRetryable)
        #expect(error.link == 0 && error.attempts == 1 && error.http == nil && error.failures == nil)
        #expect(error.cause == nil)
    }

    @Test(arguments: [
        "dns", "connect", "tls", "network", "timeout", "deadline", "http", "policy", "exists", "storage", "checksum",
        "parse", "select", "too-large", "template", "list", "cancelled", "invalid", "internal", "a", "my-own-kind",
        "abcdefghijklmnopqrstuvwxyz-abcde",
    ])
    func kind_isWellFormed_whereItIsWordsAndHyphens(_ kind: String) {
        #expect(JobError.Kind(rawValue: kind).isWellFormed)
    }

    @Test(arguments: [
        "", "-", "a-", "-a", "a--b", "A", "http2", "a b", "a_b", "\u{E4}", "a-\u{301}b", "a\n", "{{input}}",
        "abcdefghijklmnopqrstuvwxyz-abcdef",
    ])
    func kind_isNotWellFormed_otherwise(_ kind: String) {
        #expect(!JobError.Kind(rawValue: kind).isWellFormed)
    }
}
