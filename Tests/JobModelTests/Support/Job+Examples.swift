import JobModel

extension Timestamp {
    /// A time `seconds` after one that all tests share.
    static func after(_ seconds: Double) -> Timestamp {
        Timestamp(milliseconds: 1_790_000_000_000).adding(seconds: seconds)
    }
}

extension Result where Success == JSON, Failure == JobError {
    /// A failure that a retry may mend.
    static var passing: Outcome { .failure(JobError(.timeout, "Slow.", retryable: true)) }
    /// A failure that stays.
    static var lasting: Outcome { .failure(JobError(.checksum, "Wrong.")) }

    /// The kind of a failure.
    var kind: JobError.Kind? {
        guard case .failure(let error) = self else { return nil }
        return error.kind
    }
}

extension Job {
    /// The whole job object.
    func json(progress: Progress? = nil) -> JSON { JobView(self, progress: progress).json() }

    /// A job with these links that begins with a source of the type `value`.
    static func chain(_ links: String = "", _ members: String = "") throws -> Job {
        Job(submitting: try .chain(links, members), owner: 1000, at: .after(0))
    }

    /// A job that has come into `state` without links.
    static func standing(_ state: JobState) throws -> Job {
        var job = try chain("", state == .scheduled ? #""delay":60"# : "")
        switch state {
        case .scheduled, .queued: break
        case .running: try job.start()
        case .succeeded: try job.end(.success("done"))
        case .failed: try job.end(.lasting)
        case .cancelled: _ = try job.handle(.stop(.cancelled), at: .after(1))
        }
        return job
    }

    mutating func start(at seconds: Double = 1) throws {
        _ = try handle(.start, at: .after(seconds))
    }

    /// Starts it and ends its source.
    mutating func end(_ outcome: Outcome) throws {
        try start()
        try finish(outcome)
    }

    /// Ends what runs.
    @discardableResult
    mutating func finish(_ outcome: Outcome = .success(nil), random: Double = 0.5, at seconds: Double = 2) throws
        -> Action
    {
        try handle(.finished(outcome, random: random), at: .after(seconds))
    }

    /// Runs it to its end, each link ending with what `outcomes` says, else with its number as text.
    mutating func run(_ outcomes: [Int: Outcome] = [:]) throws {
        try start()
        try runOn(outcomes)
    }

    /// Runs on from a link that runs.
    mutating func runOn(_ outcomes: [Int: Outcome] = [:]) throws {
        while state == .running { try finish(outcomes[link] ?? .success(.string("r\(link)"))) }
    }

    /// The links that have ended, in order.
    var ended: [Int] { outcomes.map(\.link) }
}
