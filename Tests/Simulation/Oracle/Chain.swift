import JobModel

/// What a chain of links does, worked out anew from what is stored of it: the specification that the core must meet.
struct Chain {
    /// Where a chain stands.
    enum Position: Equatable {
        /// This link runs next.
        case at(Int)
        case over
        /// What is stored cannot have come about.
        case impossible(String)
    }

    /// What goes down the chain: nil before the source ended, then success or the kind of the failure.
    private enum Incoming {
        case nothing
        case success
        case failure(String)
    }

    /// Where a job with these outcomes stands. A stopped job runs `finally` links only; when it was stopped is not known,
    /// so from some point on, these.
    static func position(of job: Job) -> Position {
        let spec = job.spec
        var incoming = Incoming.nothing
        var last = -1
        var isStopped = false
        for outcome in job.outcomes {
            guard outcome.link > last else { return .impossible("outcome \(outcome.link) follows \(last)") }
            var expected = isStopped ? nextFinally(spec, after: last) : next(spec, after: last, incoming)
            if outcome.link != expected, job.stop != nil, !isStopped {
                isStopped = true
                expected = nextFinally(spec, after: last)
            }
            guard outcome.link == expected else {
                return .impossible("outcome \(outcome.link) where \(expected.map(String.init) ?? "none") is next")
            }
            last = outcome.link
            if isStopped || last > 0 && spec.links[last - 1].isFinally { continue }
            guard let error = outcome.error else {
                incoming = .success
                continue
            }
            incoming = .failure(error.kind.rawValue)
            if job.stop != nil, error.kind == .cancelled || error.kind == .deadline { isStopped = true }
        }
        // What takes its time to end is where it was until it has.
        if job.stop != nil, !isStopped, job.state == .running, job.link == next(spec, after: last, incoming),
            spec.step(job.link, for: job.carried)?.type == .program
        {
            return .at(job.link)
        }
        let following = job.stop != nil ? nextFinally(spec, after: last) : next(spec, after: last, incoming)
        return following.map(Position.at) ?? .over
    }

    private static func next(_ spec: JobSpec, after last: Int, _ incoming: Incoming) -> Int? {
        if last < 0 { return 0 }
        for index in spec.links.indices.dropFirst(last) {
            switch (spec.links[index], incoming) {
            case (.both, _), (.finally, _): return index + 1
            case (.pair(let then, _, _), .success): if then != nil { return index + 1 }
            case (.pair(_, let fail, let kinds), .failure(let kind)):
                if fail != nil, kinds.map({ $0.contains(kind) }) ?? true { return index + 1 }
            case (.pair, .nothing): return nil
            }
        }
        return nil
    }

    private static func nextFinally(_ spec: JobSpec, after last: Int) -> Int? {
        spec.links.indices.dropFirst(max(0, last)).first { spec.links[$0].isFinally }.map { $0 + 1 }
    }

    /// The attempts of the present link that are over.
    static func completedAttempts(of job: Job) -> Int { job.state == .running ? max(0, job.attempt - 1) : job.attempt }

    /// The state that a job must end in.
    static func end(of job: Job) -> JobState {
        switch (job.stop, job.carried) {
        case (.cancelled, _): .cancelled
        case (.deadline, _): .failed
        case (nil, .success): .succeeded
        case (nil, _): .failed
        }
    }
}

extension SourceType {
    /// Whether it runs outside of the core, in a slot.
    var isOutside: Bool {
        switch self {
        case .url, .json, .download, .upload, .program: true
        default: false
        }
    }
}

extension Job {
    /// The step of link `link` for what is stored as coming in.
    var presentStep: Step? { step }
}
