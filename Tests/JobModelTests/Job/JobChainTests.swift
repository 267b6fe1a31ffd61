import JobModel
import Testing

/// Which links of a chain run, and what comes out of it.
@Suite struct JobChainTests {
    private static let then = #"{"then":{"return":1}}"#
    private static let fail = #"{"fail":{"return":1}}"#
    private static let pair = #"{"then":{"return":1},"fail":{"return":2}}"#
    private static let both = #"{"both":{"return":1}}"#
    private static let last = #"{"finally":{"return":1}}"#
    private static let onHTTP = #"{"fail":{"return":1},"on":["http","dns"]}"#
    private static let onChecksum = #"{"then":{"return":1},"fail":{"return":1},"on":["checksum"]}"#

    @Test(
        arguments: [
            // Links, those that fail, those that run, and the outcome: a text, or a kind.
            ([], [], [0], "r0"), ([], [0], [0], "checksum"), ([then], [], [0, 1], "r1"), ([then], [0], [0], "checksum"),
            ([fail], [], [0], "r0"), ([fail], [0], [0, 1], "r1"), ([pair], [], [0, 1], "r1"),
            ([pair], [0], [0, 1], "r1"),
            ([both], [], [0, 1], "r1"), ([both], [0], [0, 1], "r1"), ([last], [], [0, 1], "r0"),
            ([last], [0], [0, 1], "checksum"), ([last], [1], [0, 1], "r0"), ([last], [0, 1], [0, 1], "checksum"),
            // What does not apply passes its input on.
            ([then, then, fail], [], [0, 1, 2], "r2"), ([then, then, fail], [0], [0, 3], "r3"),
            ([then, then, fail], [1], [0, 1, 3], "r3"), ([fail, then], [0], [0, 1, 2], "r2"),
            ([fail, then], [0, 1], [0, 1], "checksum"), ([fail, fail], [0, 1], [0, 1, 2], "r2"),
            ([last, then], [1], [0, 1, 2], "r2"), ([last, fail], [0, 1], [0, 1, 2], "r2"),
            ([then, last, fail], [1], [0, 1, 2, 3], "r3"),
            ([both, both, last], [0, 1, 2], [0, 1, 2, 3], "checksum"),
            // `on` limits the failures that a link takes.
            ([onHTTP], [0], [0], "checksum"), ([onChecksum], [0], [0, 1], "r1"), ([onChecksum], [], [0, 1], "r1"),
            ([onHTTP, onChecksum], [0], [0, 2], "r2"),
        ] as [([String], [Int], [Int], String)])
    func chain_runs_theLinksThatApply(_ links: [String], _ failing: [Int], _ ran: [Int], _ result: String) throws {
        var job = try Job.chain(links.joined(separator: ","))
        try job.run(Dictionary(uniqueKeysWithValues: failing.map { ($0, .lasting) }))
        #expect(job.ended == ran)
        #expect(job.outcomes.map { $0.error == nil } == ran.map { !failing.contains($0) })
        #expect(job.link == ran.last)
        switch job.carried {
        case .success(let value): #expect(value == .string(result) && job.state == .succeeded)
        case .failure(let error): #expect(error.kind.rawValue == result && job.state == .failed)
        case nil: Issue.record("no outcome")
        }
    }

    @Test func failure_namesItsLinkAndAttempts() throws {
        var job = try Job.chain(#"{"then":{"return":1}},{"then":{"return":1}},{"finally":{"return":1}}"#)
        try job.run([2: .lasting, 3: .lasting])
        guard case .failure(let error)? = job.carried else {
            Issue.record("no failure")
            return
        }
        #expect(error.link == 2 && error.attempts == 1)
        #expect(job.outcomes.compactMap { $0.error?.link } == [2, 3])
    }

    @Test func step_isTheBranch_forWhatCameIn() throws {
        var job = try Job.chain(#"{"then":{"return":"t"},"fail":{"return":"f"}}"#)
        try job.start()
        #expect(job.step == job.spec.source)
        var failed = job
        try job.finish()
        try failed.finish(.lasting)
        #expect(job.step?.action == .return("t"))
        #expect(failed.step?.action == .return("f"))
    }

    @Test func links_eachBeginAtTheEndOfTheOneBefore() throws {
        var job = try Job.chain(#"{"then":{"return":1}}"#)
        try job.start(at: 1)
        try job.finish(at: 5)
        try job.finish(at: 8)
        #expect(job.outcomes.map(\.startedAt) == [.after(1), .after(5)])
        #expect(job.outcomes.map(\.finishedAt) == [.after(5), .after(8)])
        #expect(job.startedAt == .after(1) && job.finishedAt == .after(8))
    }

    // MARK: - Retrying by hand

    @Test func retryFromFailed_beginsAtTheFailedLink_withWhatCameIn() throws {
        var job = try Job.chain(#"{"then":{"return":1}},{"then":{"return":1}},{"finally":{"return":1}}"#)
        try job.run([2: .lasting])
        #expect(job.ended == [0, 1, 2, 3])
        #expect(try job.handle(.retry(.failed), at: .after(10)) == .enqueue)
        #expect(job.state == .queued && job.link == 2 && job.attempt == 0 && job.carried == .success("r1"))
        #expect(job.ended == [0, 1] && job.finishedAt == nil && job.startedAt == .after(1))
        try job.run()
        #expect(job.state == .succeeded && job.ended == [0, 1, 2, 3] && job.carried == .success("r2"))
    }

    @Test func retryFromStart_beginsAnew() throws {
        var job = try Job.chain(#"{"then":{"return":1}},{"then":{"return":1}}"#, #""deadline":60"#)
        try job.run([2: .lasting])
        _ = try job.handle(.retry(.start), at: .after(100))
        #expect(job.link == 0 && job.carried == nil && job.outcomes.isEmpty && job.failedLink == nil)
        #expect(job.deadlineAt == .after(160), "a deadline that has passed would end it at once")
        try job.run()
        #expect(job.state == .succeeded && job.ended == [0, 1, 2])
    }

    @Test func retryFromFailed_beginsAtTheSource_whereThatFailed() throws {
        var job = try Job.chain(#"{"then":{"return":1}},{"finally":{"return":1}}"#)
        try job.run([0: .lasting])
        _ = try job.handle(.retry(.failed), at: .after(10))
        #expect(job.link == 0 && job.carried == nil && job.outcomes.isEmpty)
    }

    @Test func retryFromFailed_beginsAtTheLastFailure_notAtOneThatWasMended() throws {
        var job = try Job.chain(#"{"fail":{"return":1}},{"then":{"return":1}}"#)
        try job.run([0: .lasting, 2: .lasting])
        _ = try job.handle(.retry(.failed), at: .after(10))
        #expect(job.link == 2 && job.carried == .success("r1"))
        var handler = try Job.chain(#"{"fail":{"return":1}}"#)
        try handler.run([0: .lasting, 1: .lasting])
        _ = try handler.handle(.retry(.failed), at: .after(10))
        #expect(handler.link == 1 && handler.carried?.kind == .checksum && handler.ended == [0])
    }

    @Test func retry_startsItsAttemptsAnew() throws {
        var job = try Job.chain("", #""retry":{"max":1}"#)
        try job.start()
        try job.finish(.passing)
        _ = try job.handle(.due, at: .after(3))
        try job.start()
        try job.finish(.passing)
        #expect(job.state == .failed)
        _ = try job.handle(.retry(.failed), at: .after(10))
        try job.start()
        #expect(job.attempt == 1)
        #expect(try job.finish(.passing) == .wait)
    }
}
