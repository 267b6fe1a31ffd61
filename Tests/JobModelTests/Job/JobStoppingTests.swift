import JobModel
import Testing

/// Cancelling, and passing a deadline: only `finally` links run after it.
@Suite struct JobStoppingTests {
    enum Reason: CaseIterable {
        case cancel, deadline
        var event: Job.Event { .stop(stop) }
        var stop: Job.Stop { self == .cancel ? .cancelled : .deadline }
        var state: JobState { self == .cancel ? .cancelled : .failed }
        var kind: JobError.Kind { self == .cancel ? .cancelled : .deadline }
    }

    private static let links =
        #"{"then":{"return":1}},{"finally":{"return":2}},{"both":{"return":3}},{"finally":{"return":4}}"#

    private func expectStopped(
        _ job: Job, _ reason: Reason, _ ended: [Int], sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(job.state == reason.state, sourceLocation: sourceLocation)
        #expect(job.carried?.kind == reason.kind, sourceLocation: sourceLocation)
        #expect(job.ended == ended, sourceLocation: sourceLocation)
        #expect(job.finishedAt != nil && job.notBefore == nil, sourceLocation: sourceLocation)
    }

    @Test(arguments: Reason.allCases)
    func stop_ends_whatHasNotBegun(_ reason: Reason) throws {
        for state in [JobState.scheduled, .queued] {
            var job = try Job.standing(state)
            #expect(try job.handle(reason.event, at: .after(5)) == .finish)
            expectStopped(job, reason, [])
            #expect(job.startedAt == nil && job.link == 0)
        }
    }

    @Test(arguments: Reason.allCases)
    func stop_runsTheFinallyLinks_ofWhatHasNotBegun(_ reason: Reason) throws {
        for delay in ["", #""delay":60"#] {
            var job = try Job.chain(Self.links, delay)
            #expect(try job.handle(reason.event, at: .after(5)) == .enqueue)
            #expect(job.state == .queued && job.notBefore == nil, "it waits for its turn")
            try job.start()
            #expect(job.state == .running && job.link == 2 && job.step?.action == .return(2))
            #expect(job.attempt == 1 && job.notBefore == nil)
            #expect(try job.finish() == .run)
            #expect(job.link == 4)
            #expect(try job.finish() == .finish)
            expectStopped(job, reason, [2, 4])
        }
    }

    @Test(arguments: Reason.allCases)
    func stopThatAwaitsTheEnd_goesOnOnlyOnceTheSourceHasEnded_whateverItMadeOfThat(_ reason: Reason) throws {
        for outcome in [Outcome.success(1), .passing, .lasting] {
            var job = try Job.chain(Self.links, #""deadline":9"#)
            try job.start()
            #expect(try job.handle(.stop(reason.stop, awaitsEnd: true), at: .after(5)) == .none)
            #expect(job.state == .running && job.link == 0 && job.outcomes.isEmpty && job.isEnding)
            // Nothing stops it twice.
            #expect(job.deadlineAt == nil)
            for again in [Job.Event.stop(.cancelled), .stop(.deadline), .stop(.cancelled, awaitsEnd: true)] {
                #expect(try job.handle(again, at: .after(6)) == .none)
            }
            #expect(try job.finish(outcome) == .run)
            #expect(job.link == 2 && !job.isEnding)
            try job.runOn()
            expectStopped(job, reason, [0, 2, 4])
            #expect(job.outcomes[0].error?.kind == reason.kind)
            #expect(job.failedLink == Job.FailedLink(link: 0, incoming: nil))
        }
    }

    @Test(arguments: Reason.allCases)
    func stopThatAwaitsTheEnd_isAtItsEnd_afterARestart(_ reason: Reason) throws {
        var plain = try Job.chain("")
        try plain.start()
        _ = try plain.handle(.stop(reason.stop, awaitsEnd: true), at: .after(5))
        #expect(try plain.handle(.restart, at: .after(6)) == .finish)
        expectStopped(plain, reason, [0])

        var job = try Job.chain(Self.links)
        try job.start()
        _ = try job.handle(.stop(reason.stop, awaitsEnd: true), at: .after(5))
        #expect(try job.handle(.restart, at: .after(6)) == .enqueue)
        #expect(job.state == .queued && job.link == 2 && job.ended == [0])
        try job.start()
        try job.runOn()
        expectStopped(job, reason, [0, 2, 4])
    }

    @Test(arguments: Reason.allCases)
    func stop_interruptsTheSource_andRunsTheFinallyLinks(_ reason: Reason) throws {
        var job = try Job.chain(Self.links)
        try job.start()
        #expect(try job.handle(reason.event, at: .after(5)) == .interrupt(thenRun: true))
        #expect(job.link == 2 && job.state == .running)
        try job.runOn()
        expectStopped(job, reason, [0, 2, 4])
        #expect(job.outcomes[0].error?.kind == reason.kind)
        #expect(job.outcomes[0].error?.attempts == 1)
    }

    @Test(arguments: Reason.allCases)
    func stop_interruptsALink_andRunsTheFinallyLinksBehindIt(_ reason: Reason) throws {
        var job = try Job.chain(Self.links)
        try job.start()
        for _ in 0..<3 { try job.finish() }
        #expect(job.link == 3)
        #expect(try job.handle(reason.event, at: .after(5)) == .interrupt(thenRun: true))
        try job.runOn()
        expectStopped(job, reason, [0, 1, 2, 3, 4])
    }

    @Test(arguments: Reason.allCases)
    func stop_interrupts_whereNothingIsLeftToRun(_ reason: Reason) throws {
        var job = try Job.chain(#"{"finally":{"return":1}},{"then":{"return":1}}"#)
        try job.start()
        try job.finish()
        try job.finish()
        #expect(job.link == 2)
        #expect(try job.handle(reason.event, at: .after(5)) == .interrupt(thenRun: false))
        expectStopped(job, reason, [0, 1, 2])
    }

    @Test(arguments: Reason.allCases)
    func stop_letsAFinallyLinkRunOn(_ reason: Reason) throws {
        var job = try Job.chain(Self.links)
        try job.start()
        for _ in 0..<2 { try job.finish() }
        #expect(job.link == 2)
        let step = job.step
        #expect(try job.handle(reason.event, at: .after(5)) == .none)
        #expect(job.state == .running && job.link == 2 && job.step == step && job.attempt == 1)
        try job.runOn()
        // The `both` link between is passed over.
        expectStopped(job, reason, [0, 1, 2, 4])
    }

    @Test(arguments: Reason.allCases)
    func stop_duringAPause_endsTheAttempts(_ reason: Reason) throws {
        var job = try Job.chain(Self.links)
        try job.start()
        try job.finish(.passing)
        #expect(job.state == .scheduled)
        #expect(try job.handle(reason.event, at: .after(5)) == .enqueue)
        try job.start()
        try job.runOn()
        expectStopped(job, reason, [2, 4])
        #expect(job.lastFailure == nil)
        guard case .failure(let error)? = job.carried else { return }
        #expect(error.attempts == 1 && error.link == 0)
    }

    @Test(arguments: Reason.allCases, Reason.allCases)
    func stop_countsOnce(_ first: Reason, _ second: Reason) throws {
        var job = try Job.chain(Self.links)
        try job.start()
        _ = try job.handle(first.event, at: .after(5))
        let before = job
        #expect(try job.handle(second.event, at: .after(6)) == .none)
        #expect(job == before)
        try job.runOn()
        expectStopped(job, first, [0, 2, 4])
    }

    @Test(arguments: Reason.allCases)
    func finallyLink_isRetried_afterAStop(_ reason: Reason) throws {
        var job = try Job.chain(Self.links)
        try job.start()
        _ = try job.handle(reason.event, at: .after(5))
        #expect(try job.finish(.passing) == .wait)
        #expect(job.state == .scheduled && job.link == 2)
        // A second stop does not take it away.
        #expect(try job.handle(.stop(.cancelled), at: .after(6)) == .none)
        _ = try job.handle(.due, at: .after(7))
        #expect(try job.handle(.stop(.cancelled), at: .after(7)) == .none)
        try job.start()
        #expect(job.link == 2 && job.attempt == 2)
        try job.runOn()
        expectStopped(job, reason, [0, 2, 4])
    }

    @Test(arguments: Reason.allCases)
    func stop_runsAFinallyLink_thatARestartPutBack(_ reason: Reason) throws {
        var job = try Job.chain(Self.links)
        try job.start()
        for _ in 0..<2 { try job.finish() }
        _ = try job.handle(.restart, at: .after(4))
        #expect(job.link == 2 && job.state == .queued)
        #expect(try job.handle(reason.event, at: .after(5)) == .enqueue)
        try job.start()
        #expect(job.link == 2 && job.attempt == 1)
        try job.runOn()
        expectStopped(job, reason, [0, 1, 2, 4])
    }

    @Test(arguments: Reason.allCases)
    func failureOfAFinallyLink_changesNothing(_ reason: Reason) throws {
        var job = try Job.chain(Self.links)
        try job.start()
        _ = try job.handle(reason.event, at: .after(5))
        try job.runOn([2: .lasting, 4: .lasting])
        expectStopped(job, reason, [0, 2, 4])
    }

    @Test func finallyLink_isHandedTheStop() throws {
        var job = try Job.chain(Self.links)
        try job.start()
        _ = try job.handle(.stop(.cancelled), at: .after(5))
        #expect(job.carried?.kind == .cancelled)
        #expect(job.step == job.spec.step(2, for: .lasting))
    }

    @Test(arguments: Reason.allCases)
    func stop_letsNoListDecideAnyMore_whenTheFinallyLinksRun(_ reason: Reason) throws {
        var job = try Job.chain(Self.links)
        job.isGated = true
        _ = try job.handle(reason.event, at: .after(5))
        #expect(!job.isGated)
        // As an earlier version stored it.
        for (state, event) in [(JobState.scheduled, Job.Event.due), (.running, .restart)] {
            var old = job
            old.state = state
            old.isGated = true
            #expect(try old.handle(event, at: .after(6)) == .enqueue)
            #expect(!old.isGated && old.state == .queued && old.link == 2)
        }
    }

    // MARK: - Retrying what was stopped

    @Test(arguments: Reason.allCases)
    func retryFromFailed_beginsAtTheLinkThatWasStopped(_ reason: Reason) throws {
        var job = try Job.chain(Self.links)
        try job.start()
        for _ in 0..<3 { try job.finish(.success(.string("r\(job.link)"))) }
        _ = try job.handle(reason.event, at: .after(5))
        try job.runOn()
        _ = try job.handle(.retry(.failed), at: .after(9))
        #expect(job.link == 3 && job.carried == .success("r1") && job.stop == nil && job.ended == [0, 1, 2])
        try job.run()
        #expect(job.state == .succeeded && job.ended == [0, 1, 2, 3, 4])
    }

    @Test(arguments: Reason.allCases)
    func retryFromFailed_beginsAtAFinallyLink_thatRanWhenItWasStopped(_ reason: Reason) throws {
        var job = try Job.chain(Self.links)
        try job.start()
        for _ in 0..<2 { try job.finish(.success(.string("r\(job.link)"))) }
        _ = try job.handle(reason.event, at: .after(5))
        try job.runOn()
        _ = try job.handle(.retry(.failed), at: .after(9))
        #expect(job.link == 2 && job.carried == .success("r1") && job.ended == [0, 1])
        try job.run()
        #expect(job.state == .succeeded && job.ended == [0, 1, 2, 3, 4])
    }

    @Test func retryFromFailed_beginsAtTheFailure_whereThatCameBeforeTheStop() throws {
        var job = try Job.chain(#"{"then":{"return":1}},{"finally":{"return":1}},{"both":{"return":1}}"#)
        try job.start()
        try job.finish(.success("a"))
        try job.finish(.lasting)
        #expect(job.link == 2)
        _ = try job.handle(.stop(.cancelled), at: .after(5))
        try job.runOn()
        #expect(job.state == .cancelled)
        _ = try job.handle(.retry(.failed), at: .after(9))
        #expect(job.link == 1 && job.carried == .success("a"))
    }

    @Test func retryFromFailed_beginsAtAFinallyLink_notAtAFailureThatWasMended() throws {
        var job = try Job.chain(#"{"fail":{"return":1}},{"finally":{"return":1}}"#)
        try job.start()
        try job.finish(.lasting)
        try job.finish(.success("mended"))
        #expect(job.link == 2)
        _ = try job.handle(.stop(.cancelled), at: .after(5))
        try job.runOn()
        _ = try job.handle(.retry(.failed), at: .after(9))
        #expect(job.link == 2 && job.carried == .success("mended") && job.ended == [0, 1])
    }

    @Test func retry_ofWhatWasCancelledBeforeItBegan_beginsAtTheSource() throws {
        var job = try Job.chain(Self.links)
        _ = try job.handle(.stop(.cancelled), at: .after(5))
        try job.start()
        try job.runOn()
        for point in Job.RetryPoint.allCases {
            var again = job
            _ = try again.handle(.retry(point), at: .after(9))
            #expect(again.link == 0 && again.carried == nil && again.outcomes.isEmpty && again.state == .queued)
            try again.run()
            #expect(again.state == .succeeded)
        }
    }
}
