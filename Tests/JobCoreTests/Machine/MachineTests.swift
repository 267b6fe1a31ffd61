import JobModel
import Testing

@testable import JobCore

/// A job's waits, attempts and restarts.
@Suite struct MachineTests {
    // MARK: - Submission

    @Test func job_isQueued_unlessItWaitsForATime() throws {
        for members in ["", #""delay":0"#, #""notBefore":"\#(Timestamp.after(-60))""#] {
            let job = try JobRow.chain("", members)
            #expect(job.state == .queued && job.due == nil && job.notBefore == nil)
        }
        let delayed = try JobRow.chain("", #""delay":1.5"#)
        #expect(delayed.state == .scheduled && delayed.notBefore == .after(1.5))
        #expect(delayed.due == CoreMoment.after(1.5).steady)
        let later = try JobRow.chain("", #""notBefore":"\#(Timestamp.after(60))""#)
        #expect(later.state == .scheduled && later.notBefore == .after(60))
        #expect(later.due == nil, "the time of day decides")
    }

    /// The job's own deadline, its parent's, and that of its row, in seconds.
    @Test(arguments: [[nil, nil, nil], [10, nil, 10], [10, 3, 10], [10, 30, 10], [nil, 3, 3]] as [[Double?]])
    func deadline_countsFromSubmission_orIsTheParents(_ deadlines: [Double?]) throws {
        func steady(_ seconds: Double?) -> SteadyTime? { seconds.map { CoreMoment.after($0).steady } }
        let own = deadlines[0].map { #","deadline":\#($0)"# } ?? ""
        let job = try JobRow.submitted(
            #"{"source":{"type":"error"},"delay":5\#(own)}"#, deadline: steady(deadlines[1]))
        #expect(job.deadline == steady(deadlines[2]))
    }

    // MARK: - Attempts

    @Test func begin_countsAttempts_andKeepsTheFirstTime() throws {
        var job = try JobRow.chain()
        job.start(at: 1)
        #expect(job.startedAt == .after(1) && job.attempt == 1 && job.linkStartedAt == .after(1))
        job.finish(.passing, at: 2)
        job.leaveTime(as: .queued)
        #expect(job.state == .queued && job.due == nil && job.notBefore == nil)
        job.start(at: 4)
        #expect(job.startedAt == .after(1) && job.attempt == 2 && job.linkStartedAt == .after(1))
        job.finish(at: 5)
        #expect(job.finishedAt == .after(5))
        #expect(
            job.outcomes == [LinkOutcome(link: 0, error: nil, startedAt: .after(1), finishedAt: .after(5), attempts: 2)]
        )
    }

    @Test func unbegin_givesTheAttemptBack() throws {
        var job = try JobRow.chain()
        job.start()
        job.unbegin(waitingFor: "h:80")
        #expect(job.isReady && job.run == nil && job.attempt == 0 && job.host == "h:80")
    }

    @Test(arguments: [(0.0, 0.0), (0.5, 0.5), (0.999, 0.999)])
    func retry_waits_forAPauseThatIsDrawn(_ random: Double, _ pause: Double) throws {
        var job = try JobRow.chain()
        job.start()
        #expect(job.finish(.passing, random: random) == .wait)
        #expect(job.state == .scheduled && job.run == nil)
        #expect(job.due == CoreMoment.after(2).steady(after: pause) && job.notBefore == .after(2 + pause))
        #expect(job.lastFailure?.kind == .timeout && job.lastFailure?.attempts == 1)
        #expect(job.outcomes.isEmpty && job.carried == nil)
    }

    @Test func pauses_grow_andAttemptsEnd() throws {
        var job = try JobRow.chain("", #""retry":{"max":3,"initial":1,"factor":3,"maxDelay":5,"jitter":false}"#)
        for pause in [1.0, 3, 5] {
            job.start()
            #expect(job.finish(.passing) == .wait)
            #expect(job.due == CoreMoment.after(2 + pause).steady)
            job.leaveTime(as: .queued)
        }
        job.start()
        #expect(job.finish(.passing) == .finish)
        #expect(job.state == .failed && job.attempt == 4 && job.lastFailure == nil)
        #expect(job.outcomes.map(\.attempts) == [4])
        #expect(job.carried?.error?.attempts == 4 && job.carried?.error?.link == 0)
    }

    @Test(
        arguments: [
            (nil, 1), (0, 1), (0.5, 1), (7, 7), (100, 10), (.infinity, 10), (-5, 1),
        ] as [(Double?, Double)])
    func retryAfter_isHonoured_upToTheLongestPause(_ retryAfter: Double?, _ pause: Double) throws {
        var job = try JobRow.chain("", #""retry":{"max":1,"initial":1,"factor":1,"maxDelay":10,"jitter":false}"#)
        job.start()
        var error = JobError(.http, "Busy.", retryable: true, http: JobError.response(status: 503, reason: ""))
        error.retryAfter = retryAfter
        job.finish(.failure(error))
        #expect(job.due == CoreMoment.after(2 + pause).steady)
    }

    @Test func failure_isNotRetried_whereThatCannotHelpOrIsNotAllowed() throws {
        var lasting = try JobRow.chain()
        lasting.start()
        #expect(lasting.finish(.lasting) == .finish)
        var none = try JobRow.chain("", #""retry":{"max":0}"#)
        none.start()
        #expect(none.finish(.passing) == .finish)
        var post = try JobRow.submitted(#"{"source":{"type":"url","url":"u","method":"POST"}}"#)
        post.start()
        #expect(post.finish(.passing) == .finish)
    }

    @Test(arguments: [(#","retry":{"max":1}"#, true), (#","retry":{"max":0}"#, false), ("", false)])
    func program_isRetryable_ifTheSpecSaysSo(_ retry: String, _ isRetryable: Bool) throws {
        var job = try JobRow.submitted(#"{"source":{"type":"program","command":["/bin/x"]}\#(retry)}"#)
        job.start()
        job.finish(.failure(JobError(.program, "It exited with 75.", retryable: true)))
        #expect((job.lastFailure ?? job.carried?.error)?.isRetryable == isRetryable)
        #expect(job.state == (isRetryable ? .scheduled : .failed))
    }

    @Test func link_isRetried_byItsOwnPolicy() throws {
        var job = try JobRow.chain(
            #"{"then":{"source":{"type":"timer","seconds":0},"retry":{"max":1,"jitter":false}}}"#, #""retry":{"max":0}"#
        )
        job.start()
        job.finish()
        #expect(job.link == 1 && job.attempt == 1)
        #expect(job.finish(.passing) == .wait)
        #expect(job.link == 1 && job.attempt == 1 && job.due == CoreMoment.after(3).steady)
        job.leaveTime(as: .queued)
        job.start()
        #expect(job.attempt == 2)
        #expect(job.finish(.passing) == .finish)
        #expect(job.outcomes.map(\.attempts) == [1, 2])
    }

    /// A job that cannot start is tried again, less often the longer it has waited.
    @Test(arguments: [(0.0, 5.0), (40, 5), (100, 10), (10_000, 60)])
    func postponed_usesUpNoAttempt(_ waited: Double, _ pause: Double) throws {
        var job = try JobRow.chain("", #""retry":{"max":0}"#)
        var error = JobError(.storage, "There is little room.", retryable: true)
        error.postponed = 5
        for second in [0, waited] {
            job.start(at: second)
            #expect(job.attempt == 1)
            #expect(job.finish(.failure(error), at: second) == .wait)
            #expect(job.state == .scheduled && job.attempt == 0 && job.lastFailure?.attempts == 1)
            #expect(job.due == CoreMoment.after(second + (second == 0 ? 5 : pause)).steady)
            job.leaveTime(as: .queued)
        }
    }

    // MARK: - Restarts

    @Test func restart_usesUpNoAttempt() throws {
        var job = try JobRow.chain("", #""retry":{"max":1}"#)
        for _ in 0..<5 {
            job.start()
            #expect(job.attempt == 1)
            job.restart(at: .after(2))
            #expect(job.next == .enqueue)
            #expect(job.isReady && job.run == nil && job.attempt == 0)
        }
        job.start()
        #expect(job.finish(.passing) == .wait)
    }

    @Test func crashes_areForgotten_whenTheLinkEndsOrIsRetried() throws {
        var job = try JobRow.chain(#"{"then":{"return":1}}"#)
        job.start()
        job.crashes = 2
        job.restart(at: .after(2))
        #expect(job.crashes == 2)
        var cancelled = job
        cancelled.stop(.cancelled, at: .after(3))
        cancelled.retry(from: .failed, at: .after(4))
        #expect(cancelled.crashes == 0)
        job.start()
        job.finish()
        #expect(job.link == 1 && job.crashes == 0)
    }

    @Test func restart_goesOn_fromTheLastFinishedLink() throws {
        var job = try JobRow.chain(#"{"then":{"return":1}},{"then":{"return":2}}"#)
        job.start()
        job.finish(.text("a"))
        job.finish(.text("b"))
        var before = job
        job.restart(at: .after(9))
        before.restarts = 1
        job.start(at: 10)
        #expect(job == before)
        #expect(job.link == 2 && job.carried == .text("b"))
    }
}
