import JobModel
import Testing

@testable import JobCore

/// Which links of a chain run, the chain's outcome, and where a manual retry begins.
@Suite struct MachineChainTests {
    private static let then = #"{"then":{"return":1}}"#
    private static let fail = #"{"fail":{"return":1}}"#
    private static let pair = #"{"then":{"return":1},"fail":{"return":2}}"#
    private static let both = #"{"both":{"return":1}}"#
    private static let last = #"{"finally":{"return":1}}"#
    private static let onHTTP = #"{"fail":{"return":1},"on":["http","dns"]}"#
    private static let onChecksum = #"{"then":{"return":1},"fail":{"return":1},"on":["checksum"]}"#

    @Test(
        arguments: [
            // Links, failing links, links that run, and the outcome: a text or an error kind.
            ([], [], [0], "r0"), ([], [0], [0], "checksum"), ([then], [], [0, 1], "r1"), ([then], [0], [0], "checksum"),
            ([fail], [], [0], "r0"), ([fail], [0], [0, 1], "r1"), ([pair], [], [0, 1], "r1"),
            ([pair], [0], [0, 1], "r1"),
            ([both], [], [0, 1], "r1"), ([both], [0], [0, 1], "r1"), ([last], [], [0, 1], "r0"),
            ([last], [0], [0, 1], "checksum"), ([last], [1], [0, 1], "r0"), ([last], [0, 1], [0, 1], "checksum"),
            // A link that does not apply passes its input on.
            ([then, then, fail], [], [0, 1, 2], "r2"), ([then, then, fail], [0], [0, 3], "r3"),
            ([then, then, fail], [1], [0, 1, 3], "r3"), ([fail, then], [0], [0, 1, 2], "r2"),
            ([fail, then], [0, 1], [0, 1], "checksum"), ([fail, fail], [0, 1], [0, 1, 2], "r2"),
            ([last, then], [1], [0, 1, 2], "r2"), ([last, fail], [0, 1], [0, 1, 2], "r2"),
            ([then, last, fail], [1], [0, 1, 2, 3], "r3"),
            ([both, both, last], [0, 1, 2], [0, 1, 2, 3], "checksum"),
            // `on` limits the failures that a link handles.
            ([onHTTP], [0], [0], "checksum"), ([onChecksum], [0], [0, 1], "r1"), ([onChecksum], [], [0, 1], "r1"),
            ([onHTTP, onChecksum], [0], [0, 2], "r2"),
        ] as [([String], [Int], [Int], String)])
    func chain_runs_theLinksThatApply(_ links: [String], _ failing: [Int], _ ran: [Int], _ result: String) throws {
        var job = try JobRow.chain(links.joined(separator: ","))
        job.complete(Dictionary(uniqueKeysWithValues: failing.map { ($0, .lasting) }))
        #expect(job.ended == ran)
        #expect(job.outcomes.map { $0.error == nil } == ran.map { !failing.contains($0) })
        #expect(job.link == ran.last)
        if let error = job.carried?.error {
            #expect(error.kind.rawValue == result && job.state == .failed)
        } else {
            #expect(job.carried == .text(result) && job.state == .succeeded)
        }
    }

    @Test func failure_namesItsLinkAndAttempts() throws {
        var job = try JobRow.chain(#"{"then":{"return":1}},{"then":{"return":1}},{"finally":{"return":1}}"#)
        job.complete([2: .lasting, 3: .lasting])
        #expect(job.carried?.error?.link == 2 && job.carried?.error?.attempts == 1)
        #expect(job.outcomes.compactMap { $0.error?.link } == [2, 3])
    }

    @Test func step_isTheBranch_forWhatCameIn() throws {
        var job = try JobRow.chain(#"{"then":{"return":"t","timeout":1},"fail":{"return":"f","timeout":2}}"#)
        job.start()
        #expect(job.step?.source == .url)
        var failed = job
        job.finish()
        failed.finish(.lasting)
        #expect(job.step?.timeout == 1)
        #expect(failed.step?.timeout == 2)
    }

    @Test func links_eachBeginAtTheEndOfTheOneBefore() throws {
        var job = try JobRow.chain(#"{"then":{"return":1}}"#)
        job.host = "h:80"
        job.start(at: 1)
        job.finish(at: 5)
        #expect(job.host == nil, "it is another's")
        job.finish(at: 8)
        #expect(job.outcomes.map(\.startedAt) == [.after(1), .after(5)])
        #expect(job.outcomes.map(\.finishedAt) == [.after(5), .after(8)])
        #expect(job.startedAt == .after(1) && job.finishedAt == .after(8))
    }

    // MARK: - Manual retries

    @Test func retryFromFailed_beginsAtTheFailedLink_withWhatCameIn() throws {
        var job = try JobRow.chain(#"{"then":{"return":1}},{"then":{"return":1}},{"finally":{"return":1}}"#)
        job.complete([2: .lasting])
        #expect(job.ended == [0, 1, 2, 3])
        job.retry(from: .failed, at: .after(10))
        #expect(job.isReady && job.link == 2 && job.attempt == 0 && job.carried == .text("r1"))
        #expect(job.ended == [0, 1] && job.finishedAt == nil && job.startedAt == .after(1))
        job.complete()
        #expect(job.state == .succeeded && job.ended == [0, 1, 2, 3] && job.carried == .text("r2"))
    }

    @Test func retryFromStart_beginsAnew() throws {
        var job = try JobRow.chain(#"{"then":{"return":1}},{"then":{"return":1}}"#, #""deadline":60"#)
        job.complete([2: .lasting])
        #expect(job.deadline == nil, "a job that is over passes none")
        job.retry(from: .start, at: .after(100))
        #expect(job.link == 0 && job.carried == nil && job.outcomes.isEmpty && job.failedLink == nil)
        #expect(job.deadline == CoreMoment.after(160).steady, "the first one has passed")
        job.complete()
        #expect(job.state == .succeeded && job.ended == [0, 1, 2])
    }

    @Test func retryFromFailed_beginsAtTheSource_whereThatFailed() throws {
        var job = try JobRow.chain(#"{"then":{"return":1}},{"finally":{"return":1}}"#)
        job.complete([0: .lasting])
        job.retry(from: .failed, at: .after(10))
        #expect(job.link == 0 && job.carried == nil && job.outcomes.isEmpty)
    }

    @Test func retryFromFailed_beginsAtTheLastFailure_notAtOneThatWasMended() throws {
        var job = try JobRow.chain(#"{"fail":{"return":1}},{"then":{"return":1}}"#)
        job.complete([0: .lasting, 2: .lasting])
        job.retry(from: .failed, at: .after(10))
        #expect(job.link == 2 && job.carried == .text("r1"))
        var handler = try JobRow.chain(#"{"fail":{"return":1}}"#)
        handler.complete([0: .lasting, 1: .lasting])
        handler.retry(from: .failed, at: .after(10))
        #expect(handler.link == 1 && handler.carried?.error?.kind == .checksum && handler.ended == [0])
    }

    @Test func retry_startsItsAttemptsAnew() throws {
        var job = try JobRow.chain("", #""retry":{"max":1}"#)
        job.start()
        job.finish(.passing)
        job.leaveTime(as: .queued)
        job.start()
        job.finish(.passing)
        #expect(job.state == .failed)
        job.retry(from: .failed, at: .after(10))
        job.start()
        #expect(job.attempt == 1)
        #expect(job.finish(.passing) == .wait)
    }
}
