import DeferredKit
package import JobModel
import JobStore

/// What callers ask for.
extension JobEngine {
    package struct SubmitRequest: Sendable {
        let spec: JobSpec
        let caller: Caller
        /// Hears of the job from its next change on.
        let watcher: (any JobWatcher)?
        let lane: String?

        package init(_ admitted: Admission.Admitted, caller: Caller, watcher: (any JobWatcher)?) {
            spec = admitted.spec
            lane = admitted.lane
            self.caller = caller
            self.watcher = watcher
        }
    }

    package struct SubmitAnswer: Sendable, Equatable {
        package let job: JobID
        package let state: JobState
        package let created: Bool
        /// The number of the watch, where one was asked for.
        package let watch: Int?
    }

    package typealias SubmitAnswers = [Result<SubmitAnswer, EngineError>]

    /// Stores new jobs; returns once they are durable.
    package nonisolated func submit(_ requests: [SubmitRequest]) async -> SubmitAnswers {
        await withCheckedContinuation { continuation in
            submit(requests) { continuation.resume(returning: $0) }
        }
    }

    /// Stores new jobs; calls `done` on the engine once they are durable, in the order of the calls.
    package nonisolated func submit(
        _ requests: [SubmitRequest], _ done: @escaping @Sendable (SubmitAnswers) -> Void
    ) {
        enterNow { $0.take(requests, done) }
    }

    private func take(_ requests: [SubmitRequest], _ done: @escaping @Sendable (SubmitAnswers) -> Void) {
        var answers: [Result<SubmitAnswer, EngineError>?] = Array(repeating: nil, count: requests.count)
        var jobs: [Job] = []
        var places: [Int] = []
        let now = clock.now()
        var own: [UInt32: Int] = [:]
        for (place, request) in requests.enumerated() {
            let user = request.caller.uid
            let known = (coming.jobs + jobs.count, coming.byUser[user, default: 0] + own[user, default: 0])
            if let refusal = refusal(of: request, coming: known.0, ofUser: known.1) {
                answers[place] = .failure(refusal)
                continue
            }
            var job = Job(submitting: request.spec, owner: request.caller.uid, at: now)
            job.host = request.lane
            own[user, default: 0] += 1
            jobs.append(job)
            places.append(place)
        }
        coming.jobs += jobs.count
        for (user, count) in own { coming.byUser[user, default: 0] += count }
        let (stored, wanted, refused, users) = (jobs, places, answers, own)
        // Empty where all were refused: their answers keep their turn all the same.
        store.submit(stored) { result in
            self.enterNow(further: 16) { engine in
                engine.coming.jobs -= stored.count
                for (user, count) in users {
                    let left = engine.coming.byUser[user, default: 0] - count
                    engine.coming.byUser[user] = left > 0 ? left : nil
                }
                var answers = refused
                switch result {
                case .success(let submissions):
                    engine.count(submissions, stored)
                    for (index, submission) in submissions.enumerated() {
                        answers[wanted[index]] = engine.admitted(submission, stored[index], requests[wanted[index]])
                    }
                case .failure(let error):
                    if error.code == .write { engine.storageFailed(error) }
                    for place in wanted { answers[place] = .failure(EngineError(error)) }
                }
                // They hear of it before anything else happens to the jobs.
                done(answers.map { $0 ?? .failure(.stopping) })
                engine.pump(stored)
            }
        }
    }

    /// Counts the jobs that were created, those alike together.
    private func count(_ submissions: [Submission], _ jobs: [Job]) {
        var alike = (place: 0, count: 0)
        func add() {
            guard alike.count > 0 else { return }
            counters.add(jobs[alike.place], alike.count)
            totals[jobs[alike.place].owner, default: EngineTotals()].submitted += alike.count
        }
        for (place, submission) in submissions.enumerated() {
            guard case .created = submission else { continue }
            if alike.count == 0 || !jobs[place].counts(like: jobs[alike.place]) {
                add()
                alike = (place, 0)
            }
            alike.count += 1
        }
        add()
    }

    /// Starts what can start in the queues of `jobs`.
    private func pump(_ jobs: [Job]) {
        guard let first = jobs.first?.spec.queue else { return }
        pump(first)
        for queue in Set(jobs.lazy.map(\.spec.queue).filter { $0 != first }) { pump(queue) }
    }

    private func refusal(of request: SubmitRequest, coming: Int, ofUser own: Int) -> EngineError? {
        guard phase == .serving else { return .stopping }
        if let storageFailure {
            return EngineError(.storage, "Nothing can be stored at present: \(storageFailure)")
        }
        guard queues[request.spec.queue] != nil else {
            let names = queues.keys.sorted().map { "\"\($0)\"" }.joined(separator: ", ")
            return EngineError(
                .invalid(JSONPointer(["queue"])), "There is no queue \"\(request.spec.queue)\"; there are \(names).")
        }
        let limits = settings.limits
        if counters.allWaiting + coming >= limits.queuedJobs
            || counters.waiting(of: request.caller.uid) + own >= limits.queuedJobsPerUser
        {
            return EngineError(.busy(retryAfter: 1), "Too many jobs are waiting; submit again when some have run.")
        }
        return nil
    }

    private func admitted(
        _ submission: Submission, _ job: Job, _ request: SubmitRequest
    ) -> Result<SubmitAnswer, EngineError> {
        switch submission {
        case .conflict(let earlier):
            return .failure(
                EngineError(
                    .keyConflict(earlier), "The key belongs to job \(earlier), which has another spec; use another key."
                ))
        case .joined(let id, let stored):
            let state = active[id]?.job.state ?? stored
            let watch = request.watcher.map { watcher in
                let watch = addWatch(WatchScope(.jobs([id])), request.caller, watcher)
                if state.isTerminal { watches.finished(id) }
                return watch
            }
            return .success(SubmitAnswer(job: id, state: state, created: false, watch: watch))
        case .created(let id):
            var job = job
            job.id = id
            emit(job)
            let watch = request.watcher.map { addWatch(WatchScope(.jobs([id])), request.caller, $0) }
            if let deadline = job.deadlineAt {
                wallAlarms?.setEarlier(.deadline, in: deadline.seconds(since: clock.now()))
            }
            if let time = job.notBefore {
                wallAlarms?.setEarlier(.due, in: time.seconds(since: clock.now()))
            } else {
                queues[job.spec.queue]?.insert(job)
            }
            return .success(SubmitAnswer(job: id, state: job.state, created: true, watch: watch))
        }
    }

    // MARK: - Looking

    /// A job that `caller` may see, as it is now.
    func visible(_ id: JobID, to caller: Caller) async throws(EngineError) -> Job {
        if let entry = active[id] {
            guard caller.sees(entry.job) else { throw .noJob(id) }
            return entry.job
        }
        let stored: Job?
        do { stored = try await store.job(id) } catch { throw EngineError(error) }
        guard let job = active[id]?.job ?? stored, caller.sees(job) else { throw .noJob(id) }
        return job
    }

    /// Jobs that `caller` may see, as they are now, in the order asked for; an error names the first that is none.
    func visible(_ ids: [JobID], to caller: Caller) async throws(EngineError) -> [Job] {
        var found: [JobID: Job] = [:]
        var start = 0
        while start < ids.count {
            let page = ids[start..<min(start + 512, ids.count)].filter { active[$0] == nil && found[$0] == nil }
            start += 512
            guard !page.isEmpty else { continue }
            do {
                for job in try await store.jobs(numbered: page) { found[job.id] = job }
            } catch {
                throw EngineError(error)
            }
        }
        var jobs: [Job] = []
        jobs.reserveCapacity(ids.count)
        for id in ids {
            var job = active[id]?.job ?? found[id]
            // It may have left the memory during the reads of the others.
            if job == nil { job = try await visible(id, to: caller) }
            guard let job, caller.sees(job) else { throw .noJob(id) }
            jobs.append(job)
        }
        return jobs
    }

    /// The job object of `id`.
    package func job(_ id: JobID, for caller: Caller) async throws(EngineError) -> JSON {
        let job = try await visible(id, to: caller)
        return snapshot(job)
    }

    /// A job as clients see it, with the progress it makes now.
    func snapshot(_ job: Job) -> JSON {
        guard let entry = active[job.id] else { return job.json() }
        return entry.job.json(progress: progress(of: entry))
    }

    func progress(of entry: ActiveJob) -> Progress? {
        entry.join == nil ? entry.progress.latest : children(of: entry)
    }

    /// Job objects, and the number to go on after, or nil at the end.
    package func list(_ filter: JobFilter, for caller: Caller) async throws(EngineError) -> ([JSON], JobID?) {
        var filter = filter
        if !caller.isAdmin { filter.owner = caller.uid }
        if let parent = filter.parent { _ = try await visible(parent, to: caller) }
        // Of what runs nothing is stored before it ended, so the store need not be searched for it.
        if filter.states == [.running] { return listRunning(filter) }
        let wanted = filter.limit
        var found: [Job] = []
        var isAtEnd = false
        // What runs is stored as queued, so the store is asked for both, and for a few more than are wanted.
        var stored = filter
        if !filter.states.isEmpty, filter.states.contains(.running) { stored.states.insert(.queued) }
        stored.limit = wanted + 1
        while found.count <= wanted, !isAtEnd {
            let page: [Job]
            do { page = try await store.jobs(stored) } catch { throw EngineError(error) }
            isAtEnd = page.count < stored.limit
            stored.after = page.last?.id
            for job in page {
                let now = active[job.id]?.job ?? job
                if filter.states.isEmpty || filter.states.contains(now.state) { found.append(now) }
            }
        }
        let jobs = found.prefix(wanted)
        return (jobs.map(snapshot), found.count > wanted ? jobs.last?.id : nil)
    }

    private func listRunning(_ filter: JobFilter) -> ([JSON], JobID?) {
        let isNewest = filter.order == .newest
        let running = active.values.map(\.job)
            .filter { job in
                job.state == .running && filter.admits(job)
                    && filter.after.map { isNewest ? job.id < $0 : job.id > $0 } ?? true
            }
            .sorted { isNewest ? $0.id > $1.id : $0.id < $1.id }
        let jobs = running.prefix(filter.limit)
        return (jobs.map(snapshot), running.count > jobs.count ? jobs.last?.id : nil)
    }

    /// The body of a finished job's result, or where it lies.
    package enum Body: Sendable {
        case bytes([UInt8])
        case file(String)
    }

    package func body(of id: JobID, for caller: Caller) async throws(EngineError) -> Body {
        let job = try await visible(id, to: caller)
        guard job.state == .succeeded, case .success(let result) = job.carried else {
            throw EngineError(.wrongState(job.state), "Job \(id) has no result; it is \(job.state.rawValue).")
        }
        let last = job.outcomes.last { $0.link == 0 || !job.spec.links[$0.link - 1].isFinally }
        let step = last.flatMap { $0.link == 0 ? job.spec.source : job.spec.links[$0.link - 1].sourceStep }
        guard step?.type == .url else { return .bytes(result.utf8) }
        if result["spilled"] == true { return .file(bodyPath(of: id, link: last?.link ?? 0)) }
        guard let text = result["body"]?.string else { return .bytes([]) }
        if result["encoding"] == "base64" { return .bytes(Base64.decode(text) ?? []) }
        return .bytes(Array(text.utf8))
    }

    package struct Statistics: Sendable {
        package let uptime: Double
        package let jobs: [JobState: Int]
        package let totals: EngineTotals
        package let watches: Int
        package let storageFailure: String?
    }

    package func statistics(for caller: Caller) -> Statistics {
        Statistics(
            uptime: clock.now().seconds(since: startedAt),
            jobs: counters.totals(owner: caller.isAdmin ? nil : caller.uid),
            totals: caller.isAdmin
                ? totals.values.reduce(EngineTotals(), +) : totals[caller.uid] ?? EngineTotals(),
            watches: caller.isAdmin ? watches.count : watches.count(of: caller.uid), storageFailure: storageFailure)
    }

    /// The queues, by name.
    package func queueList(for caller: Caller) -> [JSON] {
        queues.keys.sorted().map { queueObject($0, caller) }
    }

    private func queueObject(_ name: String, _ caller: Caller) -> JSON {
        let counts = counters.totals(queue: name, owner: caller.isAdmin ? nil : caller.uid)
        return [
            "queue": .string(name), "concurrency": JSON(queues[name]?.settings.concurrency ?? 0),
            "suspended": .bool(queues[name]?.settings.isSuspended ?? false),
            "scheduled": JSON(counts[.scheduled, default: 0]), "queued": JSON(counts[.queued, default: 0]),
            "running": JSON(counts[.running, default: 0]),
        ]
    }

    // MARK: - Changing

    /// Gives a queue of the configuration another concurrency until the daemon ends, or makes the queue.
    package func configure(queue name: String, concurrency: Int) {
        guard let settings = queues[name]?.settings else {
            return open(QueueSettings(name: name, concurrency: concurrency))
        }
        apply(QueueSettings(name: name, concurrency: concurrency, isSuspended: settings.isSuspended))
    }

    private func apply(_ settings: QueueSettings) {
        queues[settings.name]?.settings = settings
        workQueues[settings.name]?.concurrency = settings.concurrency
        pump(settings.name)
    }

    /// Changes a queue, or makes it.
    package func set(
        queue name: String, concurrency: Int?, suspended: Bool?, for caller: Caller
    ) async throws(EngineError) -> JSON {
        guard caller.isAdmin else {
            throw EngineError(.forbidden(nil), "Only administrators change queues; ask one of them.")
        }
        var changed = queues[name]?.settings ?? QueueSettings(name: name, concurrency: concurrency ?? 16)
        changed.concurrency = concurrency ?? changed.concurrency
        changed.isSuspended = suspended ?? changed.isSuspended
        // Before it is stored, as a queue that is stored is opened by the next daemon. Those on their way count as well.
        if queues[name] == nil {
            guard queues.count + comingQueues.subtracting(queues.keys).count < 1000 || comingQueues.contains(name)
            else {
                throw EngineError(.busy(retryAfter: 60), "There are 1000 queues already; use one of them.")
            }
            comingQueues.insert(name)
        }
        let stored = changed
        let result = await withCheckedContinuation { continuation in
            store.save(stored) { continuation.resume(returning: $0) }
        }
        comingQueues.remove(name)
        if case .failure(let error) = result { throw EngineError(error) }
        if queues[name] == nil { open(changed) }
        apply(changed)
        return queueObject(name, caller)
    }

    /// Runs a failed or cancelled job again.
    package func retry(_ id: JobID, from point: Job.RetryPoint, for caller: Caller) async throws(EngineError) -> JSON {
        let read = fence.begin()
        defer { fence.end(read) }
        let seen = try await visible(id, to: caller)
        guard seen.parent == nil else {
            throw EngineError(.wrongState(seen.state), "Job \(id) is a child; retry its parent.")
        }
        guard phase == .serving else { throw .stopping }
        guard isCurrent(id, in: read), seen.state == .failed || seen.state == .cancelled else {
            let state = active[id]?.job.state ?? seen.state
            throw EngineError(
                .wrongState(state), "Job \(id) is \(state.rawValue); only a failed or cancelled one is retried.")
        }
        let entry = hold(seen)
        do { _ = try handle(entry, .retry(point)) } catch {
            throw EngineError(.wrongState(error.state), "Job \(id) is \(error.state.rawValue) and cannot be retried.")
        }
        entry.job.host = nextHost(of: entry)
        var gone: [RemovedJob] = []
        if entry.job.children > 0 {
            let link = entry.job.link
            let result = await withCheckedContinuation { continuation in
                store.removeChildren(of: id, fromLink: link) { continuation.resume(returning: $0) }
            }
            switch result {
            case .success(let removed):
                forget(removed)
                gone = removed
                entry.job.children = max(0, entry.job.children - removed.count)
            case .failure(let error):
                counters.move(seen, from: entry.job.state)
                release(id)
                throw EngineError(error)
            }
        }
        save(entry, then: .enqueue)
        let retried = entry.job.json()
        // Only now, as the job must not be left between its two states while files are removed.
        await discardParts(of: gone)
        return retried
    }

    /// Removes a finished job with all below it.
    package func remove(_ id: JobID, for caller: Caller) async throws(EngineError) {
        let read = fence.begin()
        defer { fence.end(read) }
        let job = try await visible(id, to: caller)
        guard job.parent == nil else {
            throw EngineError(.wrongState(job.state), "Job \(id) is a child; it is removed with its parent.")
        }
        guard job.state.isTerminal, isCurrent(id, in: read) else {
            throw EngineError(
                .wrongState(job.state), "Job \(id) is \(job.state.rawValue); cancel it before removing it.")
        }
        let result = await withCheckedContinuation { continuation in
            store.remove(id) { continuation.resume(returning: $0) }
        }
        switch result {
        case .success(let removed):
            forget(removed)
            await discardParts(of: removed)
        case .failure(let error): throw EngineError(error)
        }
    }
}

extension JobFilter {
    /// Whether it asks for `job`, whatever its state and number are.
    func admits(_ job: Job) -> Bool {
        (queue.map { $0 == job.spec.queue } ?? true) && (tag.map(job.spec.tags.contains) ?? true)
            && (source.map { $0 == job.spec.source.type } ?? true) && job.parent?.job == parent
            && (owner.map { $0 == job.owner } ?? true)
    }
}

extension Job {
    /// Whether both are of one owner, in one queue and in one state.
    fileprivate func counts(like other: Job) -> Bool {
        owner == other.owner && state == other.state && spec.queue == other.spec.queue
    }
}

extension Link {
    /// The step with a source that gives the link's result, where only one can.
    var sourceStep: Step? {
        switch self {
        case .pair(let then, let fail, _): then ?? fail
        case .both(let step), .finally(let step): step
        }
    }
}
