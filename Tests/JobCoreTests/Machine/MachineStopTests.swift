import JobModel
import Testing

@testable import JobCore

/// Cancelling and passing a deadline: only `finally` links run afterwards.
@Suite struct MachineStopTests {
    private static let links =
        #"{"then":{"return":1}},{"finally":{"return":2}},{"both":{"return":3}},{"finally":{"return":4}}"#
    private static let reasons = [JobRow.Stop.cancelled, .deadline]

    private func expectStopped(
        _ job: JobRow, _ reason: JobRow.Stop, _ ended: [Int], sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(job.state == (reason == .cancelled ? .cancelled : .failed), sourceLocation: sourceLocation)
        #expect(job.carried?.error?.kind == reason.error.kind, sourceLocation: sourceLocation)
        #expect(job.ended == ended, sourceLocation: sourceLocation)
        #expect(job.finishedAt != nil && job.due == nil && job.notBefore == nil, sourceLocation: sourceLocation)
    }

    // MARK: - Without a run

    @Test(arguments: reasons, ["", #""delay":60"#])
    func stop_ends_whatHasNotBegun(_ reason: JobRow.Stop, _ delay: String) throws {
        var job = try JobRow.chain("", delay)
        job.stop(reason, at: .after(5))
        #expect(job.next == .finish)
        expectStopped(job, reason, [])
        #expect(job.startedAt == nil && job.link == 0)
    }

    @Test(arguments: reasons, ["", #""delay":60"#])
    func stop_runsTheFinallyLinks_ofWhatHasNotBegun(_ reason: JobRow.Stop, _ delay: String) throws {
        var job = try JobRow.chain(Self.links, delay)
        job.stop(reason, at: .after(5))
        #expect(job.next == .enqueue)
        #expect(job.isReady && job.link == 2 && job.due == nil && job.notBefore == nil, "it waits for its turn")
        #expect(job.carried?.error?.kind == reason.error.kind, "the link is handed the reason")
        job.complete()
        expectStopped(job, reason, [2, 4])
    }

    @Test(arguments: reasons)
    func stop_duringAPause_endsTheAttempts(_ reason: JobRow.Stop) throws {
        var job = try JobRow.chain(Self.links)
        job.start()
        job.finish(.passing)
        #expect(job.state == .scheduled)
        job.stop(reason, at: .after(5))
        #expect(job.next == .enqueue)
        #expect(job.lastFailure == nil)
        job.complete()
        expectStopped(job, reason, [0, 2, 4])
        #expect(job.carried?.error?.attempts == 1 && job.carried?.error?.link == 0)
        #expect(job.outcomes.first?.error?.kind == reason.error.kind)
    }

    @Test(arguments: reasons, [JobRow.Waiting.children, .timer])
    func stop_ends_whatWaitsWithoutARun(_ reason: JobRow.Stop, _ waiting: JobRow.Waiting) throws {
        func withoutRun(_ links: String) throws -> JobRow {
            var job = try JobRow.chain(links)
            job.start()
            (job.run, job.waiting, job.due) = (nil, waiting, 9000)
            return job
        }
        var job = try withoutRun(Self.links)
        job.stop(reason, at: .after(5))
        #expect(job.next == .enqueue)
        #expect(job.isReady && job.link == 2 && job.attempt == 0 && job.due == nil)
        job.complete()
        expectStopped(job, reason, [0, 2, 4])
        var plain = try withoutRun("")
        plain.stop(reason, at: .after(5))
        #expect(plain.next == .finish)
        expectStopped(plain, reason, [0])
        #expect(plain.waiting == .nothing)
    }

    // MARK: - With a live run

    @Test(arguments: reasons, [Carried.text("done"), .passing, .lasting])
    func stop_isDecided_onceTheRunHasEnded(_ reason: JobRow.Stop, _ outcome: Carried) throws {
        var job = try JobRow.chain(Self.links, #""deadline":9"#)
        job.start()
        job.stop(reason, at: .after(5))
        #expect(job.next == .interrupt)
        #expect(job.isEnding && job.run != nil && job.link == 0 && job.outcomes.isEmpty)
        #expect(job.deadline == nil, "nothing stops it twice")
        let before = job
        for again in Self.reasons { job.stop(again, at: .after(6)) }
        #expect(job == before)
        #expect(job.finish(outcome) == .run)
        #expect(job.link == 2 && !job.isEnding)
        job.complete()
        expectStopped(job, reason, [0, 2, 4])
        #expect(job.outcomes[0].error?.kind == reason.error.kind && job.outcomes[0].error?.attempts == 1)
        #expect(job.failedLink == JobRow.FailedLink(link: 0, incoming: nil))
    }

    @Test(arguments: reasons)
    func stop_letsAFinallyLinkRunOn(_ reason: JobRow.Stop) throws {
        var job = try JobRow.chain(Self.links)
        job.start()
        for _ in 0..<2 { job.finish() }
        #expect(job.link == 2)
        job.stop(reason, at: .after(5))
        #expect(job.state == .running && job.run != nil && job.link == 2 && job.attempt == 1 && !job.isEnding)
        job.complete()
        // The `both` link in between is skipped.
        expectStopped(job, reason, [0, 1, 2, 4])
    }

    @Test(arguments: reasons)
    func finallyLink_isRetried_afterAStop(_ reason: JobRow.Stop) throws {
        var job = try JobRow.chain(Self.links)
        job.stop(reason, at: .after(5))
        job.start()
        #expect(job.finish(.passing) == .wait)
        #expect(job.state == .scheduled && job.link == 2)
        job.leaveTime(as: .queued)
        job.start()
        #expect(job.link == 2 && job.attempt == 2)
        job.complete()
        expectStopped(job, reason, [2, 4])
    }

    @Test(arguments: reasons)
    func failureOfAFinallyLink_changesNothing(_ reason: JobRow.Stop) throws {
        var job = try JobRow.chain(Self.links)
        job.start()
        job.stop(reason, at: .after(5))
        job.complete([2: .lasting, 4: .lasting])
        expectStopped(job, reason, [0, 2, 4])
    }

    // MARK: - Restarts

    @Test(arguments: reasons)
    func runToldToEnd_isAtItsEnd_afterARestart(_ reason: JobRow.Stop) throws {
        var plain = try JobRow.chain("")
        plain.start()
        plain.stop(reason, at: .after(5))
        plain.restart(at: .after(6))
        #expect(plain.next == .finish)
        expectStopped(plain, reason, [0])

        var job = try JobRow.chain(Self.links)
        job.start()
        job.stop(reason, at: .after(5))
        job.restart(at: .after(6))
        #expect(job.next == .enqueue)
        #expect(job.isReady && job.run == nil && job.link == 2 && job.attempt == 0 && job.ended == [0])
        job.complete()
        expectStopped(job, reason, [0, 2, 4])
    }

    @Test(arguments: reasons)
    func finallyLink_runsAgain_afterARestart(_ reason: JobRow.Stop) throws {
        var job = try JobRow.chain(Self.links)
        job.start()
        job.stop(reason, at: .after(5))
        job.finish(at: 6)
        var before = job
        before.restarts = 1
        job.restart(at: .after(7))
        #expect(job.next == .enqueue)
        job.start(at: 8)
        #expect(job == before)
    }

    // MARK: - Retries of stopped jobs

    /// Returns the job, stopped after this many links and retried from its failure.
    private func retried(after links: Int, _ reason: JobRow.Stop) throws -> JobRow {
        var job = try JobRow.chain(Self.links)
        job.start()
        for _ in 0..<links { job.finish(.text("r\(job.link)")) }
        job.stop(reason, at: .after(5))
        job.complete()
        job.retry(from: .failed, at: .after(9))
        return job
    }

    @Test(arguments: reasons)
    func retryFromFailed_beginsAtTheLinkThatWasStopped(_ reason: JobRow.Stop) throws {
        var job = try retried(after: 3, reason)
        #expect(job.link == 3 && job.carried == .text("r1") && job.stop == nil && job.ended == [0, 1, 2])
        job.complete()
        #expect(job.state == .succeeded && job.ended == [0, 1, 2, 3, 4])
    }

    @Test func retryFromFailed_beginsAtTheFailure_whereThatCameBeforeTheStop() throws {
        var job = try JobRow.chain(#"{"then":{"return":1}},{"finally":{"return":1}},{"both":{"return":1}}"#)
        job.start()
        job.finish(.text("a"))
        job.finish(.lasting)
        #expect(job.link == 2)
        job.stop(.cancelled, at: .after(5))
        job.complete()
        #expect(job.state == .cancelled)
        job.retry(from: .failed, at: .after(9))
        #expect(job.link == 1 && job.carried == .text("a"))
    }

    @Test func retryFromFailed_beginsAtAFinallyLink_notAtAFailureThatWasMended() throws {
        var job = try JobRow.chain(#"{"fail":{"return":1}},{"finally":{"return":1}}"#)
        job.start()
        job.finish(.lasting)
        job.finish(.text("mended"))
        #expect(job.link == 2)
        job.stop(.cancelled, at: .after(5))
        job.complete()
        job.retry(from: .failed, at: .after(9))
        #expect(job.link == 2 && job.carried == .text("mended") && job.ended == [0, 1])
    }

    @Test(arguments: RetryPoint.allCases)
    func retry_beginsAtTheSource_ofWhatHadNotBegun(_ point: RetryPoint) throws {
        var job = try JobRow.chain(Self.links)
        job.stop(.cancelled, at: .after(5))
        job.complete()
        job.retry(from: point, at: .after(9))
        #expect(job.link == 0 && job.carried == nil && job.outcomes.isEmpty && job.isReady)
        job.complete()
        #expect(job.state == .succeeded)
    }
}
