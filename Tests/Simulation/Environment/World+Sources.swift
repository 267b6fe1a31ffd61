import JobCore
import JobModel

/// Sources that end, fail, hang, report, and do not hear that they are cancelled; programs that take their time to end.
extension World {
    func begin(_ run: SourceRun) {
        figures.runs += 1
        let (url, kind): (String, SourceType) =
            switch run.parameters {
            case .url(let request): (request.url, .url)
            case .json(let request, _): (request.url, .json)
            case .download(let download): (download.url, .download)
            case .upload(let upload): (upload.url, .upload)
            case .program: ("", .program)
            default: ("", .value)
            }
        let host = Scenario.host(of: url).flatMap(Scenario.number(ofHost:)).flatMap { number in
            scenario.hosts.indices.contains(number) ? scenario.hosts[number] : nil
        }
        let slowness = host?.slowness ?? 1
        var seconds: Double
        var outcome: Outcome
        switch run.parameters.program?.first ?? Self.letter(of: url) {
        case "f": seconds = random.spread(0.001, 0.2) * slowness
        case "s": seconds = random.spread(1, 60) * slowness
        case "l": seconds = random.spread(60, 3600)
        case "h": seconds = 20_000
        // Each takes as long as the other, so that who is served how often shows the shares.
        case "e": seconds = 1 + random.unit() * 0.01
        default: seconds = random.spread(0.01, 5) * slowness
        }
        if isSettling { seconds = min(seconds, 1) }
        if random.chance(host?.silenceRate ?? 0), !isSettling {
            // Most are given up by the transfer itself; some are not.
            seconds = random.chance(0.8) ? 60 : 20_000
            outcome = .failure(JobError(.timeout, "The server was silent.", retryable: true))
        } else if random.chance(host?.failureRate ?? 0.1), Self.letter(of: url) != "e" {
            outcome = .failure(failureOfSource(host))
        } else {
            outcome = .success(result(of: kind, url: url))
        }
        if let timeout = run.timeout, timeout < seconds {
            seconds = timeout
            outcome = .failure(JobError(.timeout, "The source took too long.", retryable: true))
            if kind == .program { seconds += secondsToEnd() }
        }
        let reports: Double? = seconds > 0.3 && random.chance(0.3) ? max(0.05, seconds / 6) : nil
        sources.add(
            .init(run: run, outcome: outcome, reportPause: reports, total: Int64(random.spread(1, 1e9))))
        files.discardParts(of: run.job, links: run.link...run.link)
        schedule(.runEnds(run.run), in: seconds)
        if let reports { schedule(.runReports(run.run), in: reports) }
        // It may come when the run is over, too.
        if run.connections > 1, refusalRandom.chance(host?.retryAfterRate ?? 0) {
            schedule(.connectionRefused(run.run), in: 1.2 * refusalRandom.unit() * seconds)
        }
    }

    /// The first letter behind the host, which says how long the answer takes.
    static func letter(of url: String) -> Character? {
        url.split(separator: "/", maxSplits: 2).dropFirst().dropFirst().first?.first
    }

    private func failureOfSource(_ host: HostProfile?) -> JobError {
        let kinds: [(JobError.Kind, Bool)] = [
            (.network, true), (.connect, true), (.http, true), (.http, false), (.dns, true), (.tls, false),
            (.parse, false), (.checksum, false), (.policy, false), (.exists, false), (.storage, false),
            (.tooLarge, false), (.internal, false), (JobError.Kind(rawValue: "odd"), true),
        ]
        let (kind, isRetryable) = random.pick(kinds)
        var error = JobError(kind, "It failed as the seed wanted.", retryable: isRetryable)
        if kind == .http { error.http = .init(status: isRetryable ? 503 : 404, reason: "No") }
        if random.chance(host?.retryAfterRate ?? 0) { error.retryAfter = retryAfter(&random) }
        return error
    }

    private func retryAfter(_ random: inout SeededGenerator) -> Double {
        let asked = random.pick([0, 0.5, 3, 30, 900, 1e9, -1, .infinity, .nan])
        // A host that asked for an hour each time would let fewer jobs through in two weeks than there can be for it.
        return isSettling ? min(asked, 3) : asked
    }

    /// What a host says that refuses one of several connections.
    func refusal() -> JobError {
        var error = JobError(.http, "It has enough connections.", retryable: true)
        error.retryAfter = retryAfter(&refusalRandom)
        return error
    }

    private func result(of kind: SourceType, url: String) -> JSON {
        if random.chance(0.01) { return oddResult() }
        switch kind {
        case .url:
            return [
                "status": 200, "headers": [:], "mediaType": "text/plain", "size": 5, "notModified": false,
                "body": .string("hello"),
            ]
        case .json: return ["url": .string("http://h0.test/f"), "items": [1, 2, 3], "count": JSON(random.below(100))]
        default: return ["path": .string("/d/file"), "size": 10, "status": 200, "attempts": 1, "url": .string(url)]
        }
    }

    private func oddResult() -> JSON {
        switch random.below(6) {
        case 0: return .null
        case 1: return .string(String(repeating: "x", count: random.within(1_000...60_000)))
        case 2: return .array([])
        case 3: return (0..<60).reduce(JSON.string("{{input}}")) { inner, _ in .array([inner]) }
        case 4: return ["": "{{", "url": 7, "items": "none"]
        default: return .string("")
        }
    }

    func runEnds(_ id: RunID) {
        guard let run = sources.remove(id) else { return }
        if case .download = run.run.parameters, !run.outcome.isSuccess {
            files.addPart(of: run.run.job, link: run.run.link)
        }
        let report = ProgressReport(
            run: id, progress: Progress(completed: run.total, total: run.total), updates: run.updates + 1)
        feed(.ended(id, run.outcome, random.chance(0.8) ? report : nil, random: random.unit()))
    }

    func runReports(_ id: RunID) {
        guard let (report, pause) = sources.report(id) else { return }
        schedule(.runReports(id), in: pause)
        feed(.progress([report]))
    }

    /// A source is told to end. Some go on for a while, and say so when they end.
    func cancel(_ id: RunID) {
        if sources.breakOff(id, Outcome.failure(JobError(.cancelled, "It was told to end."))) {
            figures.brokenOff += 1
            // What ends takes seconds at most, in which few crashes would come by themselves.
            if effectsUntilCrash != nil, programRandom.chance(0.1) {
                effectsUntilCrash = programRandom.within(1...40)
            }
            return schedule(.runEnds(id), in: secondsToEnd())
        }
        guard let run = sources.remove(id) else { return }
        guard random.chance(0.3) else { return }
        schedule(.lateEnd(id, run.outcome), in: random.spread(0.0001, 30))
    }
}
