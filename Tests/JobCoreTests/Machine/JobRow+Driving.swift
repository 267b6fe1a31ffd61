import JobModel
@testable import JobCore

extension Timestamp {
    /// Returns the time `seconds` after a fixed start.
    static func after(_ seconds: Double) -> Timestamp {
        Timestamp(milliseconds: 1_790_000_000_000).adding(seconds: seconds)
    }
}

extension CoreMoment {
    /// Returns the moment `seconds` after a fixed start, by both clocks.
    static func after(_ seconds: Double, random: Double = 0.5) -> CoreMoment {
        CoreMoment(wall: .after(seconds), steady: Int64((seconds * 1000).rounded()), random: random)
    }
}

extension Carried {
    /// A failure that a retry may fix.
    static var passing: Carried { .failure(JobError(.timeout, "Slow.", retryable: true)) }
    /// A permanent failure.
    static var lasting: Carried { .failure(JobError(.checksum, "Wrong.")) }

    static func text(_ text: String) -> Carried { .success(.inline(JSON.string(text).utf8)) }
}

/// Drives a row manually, as the core does.
extension JobRow {
    /// Returns a job of this spec, submitted at second 0; `deadline` is its parent's.
    static func submitted(_ spec: String, deadline: SteadyTime? = nil) throws -> JobRow {
        let spec = try JobSpecReader.spec(JSON(parsing: spec), limits: JobLimits())
        return JobRow(
            NewJob.Terms(spec, host: nil), owner: 1000, groups: nil, parent: nil, deadline: deadline,
            specSize: spec.size, at: .after(0))
    }

    /// Returns a URL job with these links and spec members.
    static func chain(_ links: String = "", _ members: String = "") throws -> JobRow {
        let members = members.isEmpty ? "" : ",\(members)"
        return try submitted(#"{"source":{"type":"url","url":"http://h/"},"then":[\#(links)]\#(members)}"#)
    }

    /// The next step of the job.
    enum Next {
        case enqueue, run, interrupt, wait, finish
    }

    var next: Next {
        switch state {
        case .queued, .held: .enqueue
        case .running: isEnding && run != nil ? .interrupt : .run
        case .scheduled: .wait
        case .succeeded, .failed, .cancelled: .finish
        }
    }

    mutating func start(at seconds: Double = 1) { begin(RunID(life: 1, number: 1), at: .after(seconds)) }

    /// Ends the run; the next link starts at once.
    @discardableResult
    mutating func finish(_ outcome: Carried = .text("done"), random: Double = 0.5, at seconds: Double = 2) -> Next {
        finished(outcome, at: .after(seconds, random: random))
        let next = next
        if next == .run { start(at: seconds) }
        return next
    }

    /// Runs the job to its end; each link ends with its entry in `outcomes`, or else with its number.
    mutating func complete(_ outcomes: [Int: Carried] = [:]) {
        if state == .queued { start() }
        while state == .running { finish(outcomes[link] ?? .text("r\(link)")) }
    }

    /// The links that have ended, in order.
    var ended: [Int] { outcomes.map(\.link) }
}
