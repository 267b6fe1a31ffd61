import InMemoryStore
import JobModel
import JobCore

/// Live runs: their steps, and the behaviour of servers, programs and files.
extension World {
    func start(_ order: RunOrder) {
        figures.runs += 1
        oracle.starts(order, self)
        engine.runs[order.run] = SimulatedEngine.Run(order: order, live: order.live)
        guard case .adopt = order.kind, var target = order.job.awaits else {
            return schedule(.expand(order.run), in: random.spread(0.000_05, 0.05))
        }
        // Linking files may take long, and a retry of the job that has them, or of its root, would drop them.
        schedule(.expand(order.run), in: random.spread(0.000_05, 20))
        guard chances.chance(0.1) else { return }
        while let parent = store.job(target)?.parent { target = parent.job }
        ask(.change(target, .retry(from: .start)), by: Caller(uid: order.job.owner, isAdmin: false), user: nil)
    }

    /// Feeds an event of a run to the core.
    private func tell(_ run: RunID, _ event: RunEvent) {
        guard engine.runs[run] != nil else { return }
        feed(.run(run, event))
    }

    private func end(_ run: RunID, _ outcome: Carried, received: Int64 = 0) {
        guard engine.runs[run] != nil, engine.runs[run]?.state != .ended else { return }
        engine.runs[run]?.state = .ended
        let isProgram = engine.runs[run]?.order.job.presentSource == .program
        let output = isProgram && random.chance(0.8) ? run.output(size: Int64(random.below(100_000))) : nil
        feed(.run(run, .ended(RunEnd(outcome, bytes: received, output: output))))
    }

    func expand(_ id: RunID) {
        guard let run = engine.runs[id], run.state == .expanding else { return }
        let order = run.order
        if case .gather(let list) = order.kind { return gathered(id, list) }
        if case .adopt(let value, _) = order.kind { return adopted(id, value, order.job) }
        if random.chance(0.005) {
            return end(id, .failure(JobError(.template, "Its expression finds nothing.")))
        }
        guard let step = SpecReading.step(of: order) else {
            return fail(2, "Job \(order.job.id) was started at link \(order.job.link), which has no step.")
        }
        switch step {
        case .return(let value): end(id, .success(.inline(value)))
        case .throw: end(id, .failure(JobError(JobError.Kind(rawValue: "odd"), "Thrown.")))
        case .source(let source): expand(id, source)
        }
    }

    private func expand(_ id: RunID, _ source: JSON) {
        guard let run = engine.runs[id] else { return }
        switch source["type"]?.string {
        case "value": end(id, .success(.inline(source["value"]?.utf8 ?? [])))
        case "error": end(id, .failure(JobError(JobError.Kind(rawValue: "odd"), "It was written to fail.")))
        case "timer":
            engine.runs[id]?.state = .ended
            tell(id, .timer(source["seconds"]?.double ?? 0))
        case "job":
            engine.runs[id]?.state = .ended
            tell(id, .job(source["job"]?.int.map(JobID.init) ?? guess(from: run.order.job)))
        case "list", "each":
            engine.runs[id]?.state = .making
            let total = (source["jobs"] ?? source["in"])?.array?.count ?? 0
            let template: StoredValue? = source["job"].map { .inline($0.utf8) }
            tell(
                id,
                .list(
                    ListRow(
                        job: run.order.job.id, link: run.order.job.link,
                        mode: source["mode"]?.string.flatMap(ListMode.init(rawValue:)) ?? .settled,
                        concurrency: source["concurrency"]?.int, total: total, template: template)))
        default:
            // Its program is at another node only.
            if !isAlone, !isSettling, run.order.job.node == nil, chances.chance(0.02) {
                engine.runs[id]?.state = .asking
                return tell(id, .elsewhere(node: chances.pick(nodes.filter { $0 !== node }).name))
            }
            guard let url = source["url"]?.string else { return work(id) }
            guard let host = Scenario.host(of: url) else {
                return end(id, .failure(JobError(.policy, "That host may not be asked.")))
            }
            let segments = source["segments"]?.int ?? 1
            if run.live.host == host, segments == 1 { return work(id) }
            engine.runs[id]?.state = .asking
            tell(id, .host(host, connections: segments))
        }
    }

    /// The value of an expression that should name a job: itself, a relative, or any job.
    private func guess(from job: JobRow) -> JobID {
        switch random.below(4) {
        case 0: job.id
        case 1: job.parent?.job ?? job.id + 1
        // A sibling, or a job submitted at the same time.
        case 2: job.id + JobID(random.within(-3...3))
        default: JobID(random.below(Int(oracle.lastJob) + 2))
        }
    }

    func proceed(_ id: RunID, _ host: String, _ connections: Int) {
        guard engine.runs[id] != nil else { return }
        if let run = engine.runs[id] { oracle.asks(host, run, self) }
        engine.runs[id]?.live.host = host
        engine.runs[id]?.live.permits = connections
        oracle.permits(host, self)
        if engine.runs[id]?.state == .asking { work(id) }
    }

    func makeChildren(_ id: RunID, from: Int) {
        guard let run = engine.runs[id], run.state == .making, let step = SpecReading.step(of: run.order),
            case .source(let source) = step
        else { return }
        let total = (source["jobs"] ?? source["in"])?.array?.count ?? 0
        let end = min(total, from + random.within(1...8))
        let children = (from..<max(from, end)).map { index in
            SpecReading.child(source, index, of: run.order.job, scenario.settings.limits)
        }
        tell(id, .children(children, isLast: end >= total))
    }

    // MARK: - Work

    private func work(_ id: RunID) {
        guard let order = engine.runs[id]?.order else { return }
        engine.runs[id]?.state = .working
        let kind = order.job.step?.source ?? .url
        let host = order.live.host ?? engine.runs[id]?.live.host ?? ""
        let profile = scenario.hosts[abs(host.utf8.reduce(0) { $0 &* 31 &+ Int($1) }) % scenario.hosts.count]
        if kind == .download, random.chance(0.5) {
            tell(id, .checkpoint(Array("{\"at\":\(random.below(1000))}".utf8), { _ in }))
        }
        var seconds = random.spread(0.005, 20) * profile.slowness
        var outcome = outcome(of: profile)
        if isSettling { seconds = min(seconds, 1) }
        if random.chance(isSettling ? 0 : profile.silenceRate) { seconds = .infinity }
        if let timeout = order.job.step?.timeout, seconds > timeout {
            seconds = timeout
            outcome = .failure(JobError(.timeout, "It took too long.", retryable: true))
        }
        engine.runs[id]?.outcome = outcome
        if seconds < .infinity { schedule(.runEnds(id), in: seconds) }
    }

    private func outcome(of profile: HostProfile) -> Carried {
        guard random.chance(isSettling ? 0.02 : profile.failureRate) else {
            return .success(value())
        }
        var error = JobError(
            random.pick([.network, .timeout, .http, .storage]), "It broke.", retryable: random.chance(0.8))
        if error.kind == .http { error.http = JobError.response(status: 503, reason: "Busy") }
        if error.kind == .http, random.chance(profile.retryAfterRate) { error.retryAfter = random.spread(0.5, 7_000) }
        if error.kind == .storage { error.postponed = random.pick([1, 5]) }
        return .failure(error)
    }

    private func value() -> StoredValue {
        random.chance(0.05)
            ? .file(BlobReference(life: life, number: Int64(random.below(1 << 40)), size: 70_000)) : .inline(result())
    }

    private func result() -> [UInt8] {
        switch random.below(20) {
        case 0: return Array("null".utf8)
        case 1: return [0x22] + Array(repeating: UInt8(ascii: "x"), count: random.within(1_000...60_000)) + [0x22]
        default: return Array("{\"status\":200}".utf8)
        }
    }

    func runEnds(_ id: RunID) {
        guard let run = engine.runs[id], run.state == .working || run.state == .stopping, let outcome = run.outcome
        else { return }
        end(id, outcome, received: Int64(random.below(1000)))
    }

    /// Stops a run. Its end arrives at once or after a while; a program takes its time.
    func cancel(_ id: RunID) {
        guard let run = engine.runs[id] else { return }
        engine.runs[id]?.live.isStopping = true
        guard run.state != .ended else { return }
        figures.brokenOff += 1
        engine.runs[id]?.state = .stopping
        if run.outcome == nil || random.chance(0.7) {
            engine.runs[id]?.outcome = .failure(JobError(.cancelled, "It was told to end."))
        }
        let late = run.live.endsLater ? 5.0 : 0.5
        schedule(.runEnds(id), in: random.spread(0.000_1, late))
    }

    private func adopted(_ id: RunID, _ value: StoredValue, _ job: JobRow) {
        oracle.adopts(value, job, self)
        if random.chance(0.01) { return end(id, .failure(JobError(.storage, "It cannot be linked.", retryable: true))) }
        guard let blob = value.blob else { return fail(0, "Job \(job.id) links files that its result has not.") }
        end(id, .success(.file(BlobReference(life: life, number: Int64(random.below(1 << 40)), size: blob.size))))
    }

    private func gathered(_ id: RunID, _ list: ListRow) {
        oracle.gathers(list, self)
        if random.chance(0.01) {
            return end(id, .failure(JobError(.tooLarge, "Its outcome is too large.")))
        }
        switch (list.mode, list.decided) {
        case (.first, let index?): end(id, .success(.inline(Array("{\"index\":\(index)}".utf8))))
        case (.all, let index?): end(id, .failure(JobError(.list, "Child \(index) failed.")))
        case (.first, nil): end(id, .failure(JobError(.list, "All failed.")))
        default: end(id, .success(.inline(Array("[\(list.ended)]".utf8))))
        }
    }
}
