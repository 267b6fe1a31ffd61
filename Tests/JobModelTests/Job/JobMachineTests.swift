import JobModel
import Testing

/// Every event in every state, and what starts, waits and is retried.
@Suite struct JobMachineTests {
    enum Trigger: String, CaseIterable {
        case due, start, success, failure, passingFailure, cancel, deadline, restart, retryFailed, retryStart

        var event: Job.Event {
            switch self {
            case .due: .due
            case .start: .start
            case .success: .finished(.success(1), random: 0)
            case .failure: .finished(.lasting, random: 0)
            case .passingFailure: .finished(.passing, random: 0)
            case .cancel: .stop(.cancelled)
            case .deadline: .stop(.deadline)
            case .restart: .restart
            case .retryFailed: .retry(.failed)
            case .retryStart: .retry(.start)
            }
        }
    }

    /// All that is allowed; what is missing here is invalid.
    private static let transitions: [JobState: [Trigger: (JobState, Job.Action)]] = [
        .scheduled: [
            .due: (.queued, .enqueue), .cancel: (.cancelled, .finish), .deadline: (.failed, .finish),
        ],
        .queued: [
            .start: (.running, .run), .cancel: (.cancelled, .finish), .deadline: (.failed, .finish),
        ],
        .running: [
            .success: (.succeeded, .finish), .failure: (.failed, .finish), .passingFailure: (.scheduled, .wait),
            .cancel: (.cancelled, .interrupt(thenRun: false)), .deadline: (.failed, .interrupt(thenRun: false)),
            .restart: (.queued, .enqueue),
        ],
        .succeeded: [:],
        .failed: [.retryFailed: (.queued, .enqueue), .retryStart: (.queued, .enqueue)],
        .cancelled: [.retryFailed: (.queued, .enqueue), .retryStart: (.queued, .enqueue)],
    ]

    @Test(arguments: JobState.allCases, Trigger.allCases)
    func event_leadsToItsState_orIsInvalidAndChangesNothing(_ state: JobState, _ trigger: Trigger) throws {
        let before = try Job.standing(state)
        #expect(before.state == state)
        var job = before
        if let (after, action) = Self.transitions[state]?[trigger] {
            #expect(try job.handle(trigger.event, at: .after(5)) == action)
            #expect(job.state == after)
            #expect((job.finishedAt != nil) == after.isTerminal)
            #expect((job.notBefore != nil) == (after == .scheduled))
        } else {
            let error = #expect(throws: Job.InvalidTransition.self) { try job.handle(trigger.event, at: .after(5)) }
            #expect(error?.state == state)
            #expect(job == before)
        }
    }

    @Test func states_areTerminal_orGoOn() {
        #expect(JobState.allCases.filter(\.isTerminal) == [.succeeded, .failed, .cancelled])
    }

    // MARK: - Submitting

    @Test func job_isQueued_unlessItWaitsForATime() throws {
        func job(_ members: String, deadline: Timestamp? = nil) throws -> Job {
            Job(submitting: try .chain("", members), owner: 7, deadline: deadline, at: .after(0))
        }
        let plain = try job(#""priority":1"#)
        #expect(
            plain.state == .queued && plain.notBefore == nil && plain.deadlineAt == nil && plain.createdAt == .after(0))
        let delayed = try job(#""delay":1.5"#)
        #expect(delayed.state == .scheduled && delayed.notBefore == .after(1.5))
        #expect(try job(#""delay":0"#).state == .queued)
        let later = try job(#""notBefore":"\#(Timestamp.after(60))""#)
        #expect(later.state == .scheduled && later.notBefore == .after(60))
        let past = try job(#""notBefore":"\#(Timestamp.after(-60))""#)
        #expect(past.state == .queued && past.notBefore == nil)
    }

    @Test func deadline_countsFromSubmission_andIsThatOfTheParentWhereThatIsSooner() throws {
        func deadline(_ own: Double?, _ parents: Timestamp?) throws -> Timestamp? {
            let spec = try JobSpec.chain("", own.map { "\"deadline\":\($0),\"delay\":5" } ?? "\"delay\":5")
            return Job(submitting: spec, owner: 7, deadline: parents, at: .after(0)).deadlineAt
        }
        #expect(try deadline(nil, nil) == nil)
        #expect(try deadline(10, nil) == .after(10))
        #expect(try deadline(10, .after(3)) == .after(3))
        #expect(try deadline(10, .after(30)) == .after(10))
        #expect(try deadline(nil, .after(3)) == .after(3))
    }

    // MARK: - Attempts

    @Test func start_countsAttempts_andKeepsTheFirstTime() throws {
        var job = try Job.chain()
        try job.start(at: 1)
        #expect(job.startedAt == .after(1) && job.attempt == 1 && job.linkStartedAt == .after(1))
        try job.finish(.passing, at: 2)
        _ = try job.handle(.due, at: .after(3))
        try job.start(at: 4)
        #expect(job.startedAt == .after(1) && job.attempt == 2 && job.linkStartedAt == .after(1))
        try job.finish(at: 5)
        #expect(job.finishedAt == .after(5))
        #expect(
            job.outcomes == [LinkOutcome(link: 0, error: nil, startedAt: .after(1), finishedAt: .after(5), attempts: 2)]
        )
    }

    @Test(arguments: [(0.0, 0.0), (0.5, 0.25), (0.999, 0.4995)])
    func retry_waits_forAPauseThatIsDrawn(_ random: Double, _ pause: Double) throws {
        var job = try Job.chain()
        try job.start()
        #expect(try job.finish(.passing, random: random) == .wait)
        #expect(job.notBefore == .after(2 + pause))
        #expect(job.lastFailure?.kind == .timeout && job.lastFailure?.attempts == 1)
        #expect(job.outcomes.isEmpty && job.carried == nil)
    }

    @Test func pauses_grow_andAttemptsEnd() throws {
        var job = try Job.chain("", #""retry":{"max":3,"initial":1,"factor":3,"maxDelay":5,"jitter":false}"#)
        for pause in [1.0, 3, 5] {
            try job.start()
            #expect(try job.finish(.passing) == .wait)
            #expect(job.notBefore == .after(2 + pause))
            _ = try job.handle(.due, at: .after(9))
        }
        try job.start()
        #expect(try job.finish(.passing) == .finish)
        #expect(job.state == .failed && job.attempt == 4 && job.lastFailure == nil)
        #expect(job.outcomes.map(\.attempts) == [4])
        guard case .failure(let error)? = job.carried else {
            Issue.record("no failure")
            return
        }
        #expect(error.attempts == 4 && error.link == 0)
    }

    @Test(
        arguments: [
            (nil, 1), (0, 1), (0.5, 1), (7, 7), (100, 10), (.infinity, 10), (-5, 1),
        ] as [(Double?, Double)])
    func retryAfter_isHonoured_upToTheLongestPause(_ retryAfter: Double?, _ pause: Double) throws {
        var job = try Job.chain("", #""retry":{"max":1,"initial":1,"factor":1,"maxDelay":10,"jitter":false}"#)
        try job.start()
        var error = JobError(.http, "Busy.", retryable: true, http: .init(status: 503, reason: ""))
        error.retryAfter = retryAfter
        try job.finish(.failure(error))
        #expect(job.notBefore == .after(2 + pause))
    }

    @Test func failure_isNotRetried_whereThatCannotHelpOrIsNotAllowed() throws {
        var lasting = try Job.chain()
        try lasting.start()
        #expect(try lasting.finish(.lasting) == .finish)
        var none = try Job.chain("", #""retry":{"max":0}"#)
        try none.start()
        #expect(try none.finish(.passing) == .finish)
        var post = Job(
            submitting: try .parsing(#"{"source":{"type":"url","url":"u","method":"POST"}}"#), owner: 1, at: .after(0))
        try post.start()
        #expect(try post.finish(.passing) == .finish)
    }

    @Test func link_isRetried_byItsOwnPolicy() throws {
        var job = try Job.chain(
            #"{"then":{"source":{"type":"timer","seconds":0},"retry":{"max":1,"jitter":false}}}"#, #""retry":{"max":0}"#
        )
        try job.start()
        try job.finish()
        #expect(job.link == 1 && job.attempt == 1)
        #expect(try job.finish(.passing) == .wait)
        #expect(job.link == 1 && job.attempt == 1 && job.notBefore == .after(2.5))
        _ = try job.handle(.due, at: .after(3))
        try job.start()
        #expect(job.attempt == 2)
        #expect(try job.finish(.passing) == .finish)
        #expect(job.outcomes.map(\.attempts) == [1, 2])
    }

    // MARK: - Restarts

    @Test func restart_usesUpNoAttempt() throws {
        var job = try Job.chain("", #""retry":{"max":1}"#)
        for _ in 0..<5 {
            try job.start()
            #expect(job.attempt == 1)
            #expect(try job.handle(.restart, at: .after(2)) == .enqueue)
            #expect(job.state == .queued && job.attempt == 0)
        }
        try job.start()
        #expect(try job.finish(.passing) == .wait)
    }

    @Test func restart_goesOn_fromTheLastFinishedLink() throws {
        var job = try Job.chain(#"{"then":{"return":1}},{"then":{"return":2}}"#)
        try job.start()
        try job.finish(.success("a"))
        try job.finish(.success("b"))
        let before = job
        _ = try job.handle(.restart, at: .after(9))
        try job.start(at: 10)
        #expect(job.link == 2 && job.carried == .success("b") && job.outcomes == before.outcomes)
        #expect(job.step == before.step)
    }

    @Test func restart_ofAStoppedJob_waitsForItsTurn_andRunsOn() throws {
        var job = try Job.chain(#"{"finally":{"return":1}}"#)
        try job.start()
        _ = try job.handle(.stop(.cancelled), at: .after(2))
        let before = job
        #expect(try job.handle(.restart, at: .after(3)) == .enqueue)
        #expect(job.state == .queued)
        try job.start(at: 4)
        #expect(job == before)
    }

    @Test func postponed_usesUpNoAttempt() throws {
        let spec = try JobSpecReader.spec(
            ["source": ["type": "download", "url": "http://a/", "path": "x"], "retry": ["max": 0]], limits: JobLimits())
        var job = Job(submitting: spec, owner: 1, at: .after(0))
        var error = JobError(.storage, "There is little room.", retryable: true)
        error.postponed = 5
        for second in 0..<3 {
            _ = try job.handle(.start, at: .after(Double(second)))
            #expect(job.attempt == 1)
            #expect(try job.handle(.finished(.failure(error), random: 0), at: .after(Double(second))) == .wait)
            #expect(job.state == .scheduled && job.attempt == 0 && job.notBefore == .after(Double(second) + 5))
            #expect(job.json()["error"]?["message"] == "There is little room.")
            #expect(try job.handle(.due, at: .after(Double(second))) == .enqueue)
        }
    }
}
