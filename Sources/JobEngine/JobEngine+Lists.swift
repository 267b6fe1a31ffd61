import DataSources
import DequeModule
import JobModel
import JobStore

/// Lists and races: making child jobs, and joining what becomes of them.
extension JobEngine {
    func startList(_ entry: ActiveJob, _ list: ListSpec) {
        startChildren(entry, specs: list.jobs, mode: list.mode, concurrency: list.concurrency)
    }

    func startEach(_ entry: ActiveJob, _ each: EachSpec) {
        var specs: [JSON] = []
        specs.reserveCapacity(each.items.count)
        for (index, item) in each.items.enumerated() {
            do {
                specs.append(try TemplateExpansion([.item: item, .index: JSON(index)]).child(each.job))
            } catch {
                specs.append(JobSpec.failing(with: error))
            }
        }
        startChildren(entry, specs: specs, mode: each.mode, concurrency: each.concurrency)
    }

    /// Makes the children, unless an earlier run of the daemon did. The parent gives its place to them.
    private func startChildren(_ entry: ActiveJob, specs: [JSON], mode: ListMode, concurrency: Int?) {
        if entry.job.parent == nil, entry.job.stop == nil, !entry.countsAsList {
            // One whose children were made already waits for nobody.
            guard hosts.isOpen(HostBoard.lists) || entry.job.children > 0 else {
                return park(entry, host: HostBoard.lists)
            }
            hosts.enter(HostBoard.lists)
            entry.countsAsList = true
        }
        entry.run += 1
        let run = entry.run
        leave(entry)
        guard entry.job.children > 0 else { return makeChildren(entry, specs, mode, concurrency) }
        // Owned by the engine; it ends with the read.
        Task {
            var states: [(id: JobID, state: JobState)]?
            var isOld: Bool
            // A child that ended during the read had no list to tell, and may have been read as it was before.
            repeat {
                let read = fence.begin()
                states = try? await store.childStates(of: entry.job.id, link: entry.job.link)
                isOld = states?.contains { !$0.state.isTerminal && fence.isOld($0.id, in: read) } == true
                fence.end(read)
            } while isOld && phase == .serving
            guard active[entry.job.id] === entry, entry.run == run, phase == .serving else { return }
            guard let states else {
                return stepEnded(
                    entry, .failure(JobError(.storage, "The children of job \(entry.job.id) cannot be read; retry it."))
                )
            }
            if states.isEmpty { return makeChildren(entry, specs, mode, concurrency) }
            join(entry, ListJoin(mode: mode, concurrency: concurrency, ids: states.map(\.id)), states.map(\.state))
        }
    }

    /// A list took longer than its timeout.
    func listTimedOut(_ id: JobID) {
        guard let entry = active[id], let open = entry.join?.open else { return }
        closeList(entry)
        entry.run += 1
        stopLater(open)
        let seconds = entry.job.step?.timeout ?? entry.job.spec.timeout ?? 0
        stepEnded(
            entry,
            .failure(
                JobError(.timeout, "The list took longer than its timeout of \(JSON(seconds)) seconds; allow it more."))
        )
    }

    /// The list or the timer of a job is over.
    func closeList(_ entry: ActiveJob) {
        if entry.countsAsTimer {
            entry.countsAsTimer = false
            let wasOpen = hosts.isOpen(HostBoard.timers)
            hosts.leave(HostBoard.timers)
            if !wasOpen { pumpAll() }
        }
        if entry.join != nil { alarms?.clear(.list(entry.job.id)) }
        entry.join = nil
        entry.held = []
        guard entry.countsAsList else { return }
        entry.countsAsList = false
        hosts.leave(HostBoard.lists)
        pumpAll()
    }

    /// A child's spec with what it inherits.
    private static func inheriting(_ json: JSON, from parent: Job) -> JSON {
        guard var members = json.object else { return json }
        if members["queue"] == nil { members["queue"] = .string(parent.spec.queue) }
        if members["priority"] == nil, parent.spec.priority != 0 { members["priority"] = JSON(parent.spec.priority) }
        return .object(members)
    }

    /// The spec of a child; one that cannot be made is a child that fails with the reason, and keeps no other from being
    /// made.
    private func childSpec(_ json: JSON, _ index: Int, of parent: Job) throws(JobError) -> JobSpec {
        do throws(JobError) {
            let spec = try admission.child(Self.inheriting(json, from: parent), index: index, of: parent)
            if queues[spec.queue] != nil { return spec }
            throw JobError(
                .invalid, "There is no queue \"\(spec.queue)\" for child \(index); make it or name another.")
        } catch {
            let failing = JobSpec.failing(with: error)
            return try admission.child(Self.inheriting(failing, from: parent), index: index, of: parent)
        }
    }

    private func makeChildren(_ entry: ActiveJob, _ specs: [JSON], _ mode: ListMode, _ concurrency: Int?) {
        let parent = entry.job
        let now = clock.now()
        var children: [Job] = []
        do throws(JobError) {
            for (index, json) in specs.enumerated() {
                let spec = try childSpec(json, index, of: parent)
                let place = Job.Parent(
                    job: parent.id, link: parent.link, index: index, depth: (parent.parent?.depth ?? 0) + 1)
                var child = Job(
                    submitting: spec, owner: parent.owner, parent: place, deadline: parent.deadlineAt, at: now)
                child.host = spec.host
                children.append(child)
            }
        } catch {
            return stepEnded(entry, .failure(error))
        }
        if children.isEmpty { return join(entry, ListJoin(mode: mode, concurrency: concurrency, ids: []), []) }
        entry.job.children += children.count
        let run = entry.run
        let (made, id) = (children, entry.job.id)
        store.submit(children: children, of: entry.job) { result in
            self.enter { $0.childrenMade(id, run, made, result, mode, concurrency) }
        }
    }

    private func childrenMade(
        _ parent: JobID, _ run: Int, _ children: [Job], _ result: Result<[JobID], StoreError>, _ mode: ListMode,
        _ concurrency: Int?
    ) {
        guard phase == .serving else { return }
        switch result {
        case .failure(let error):
            guard let entry = active[parent], entry.run == run else { return }
            entry.job.children -= children.count
            closeList(entry)
            stepEnded(entry, .failure(JobError(.storage, "The children cannot be stored: \(error.message)")))
        case .success(let ids):
            var numbered = children
            for index in numbered.indices {
                numbered[index].id = ids[index]
                counters.add(numbered[index])
            }
            guard let entry = active[parent], entry.run == run else { return stopLater(ids) }
            join(
                entry, ListJoin(mode: mode, concurrency: concurrency, ids: ids),
                Array(repeating: .queued, count: ids.count))
            for child in numbered {
                emit(child)
                if child.state == .scheduled, let time = child.notBefore {
                    wallAlarms?.setEarlier(.due, in: time.seconds(since: clock.now()))
                } else {
                    queues[child.spec.queue]?.insert(child)
                }
                if let deadline = child.deadlineAt {
                    wallAlarms?.setEarlier(.deadline, in: deadline.seconds(since: clock.now()))
                }
            }
            for queue in Set(numbered.map(\.spec.queue)) { pump(queue) }
        }
    }

    /// Begins to wait for children, some of which may have ended before.
    private func join(_ entry: ActiveJob, _ join: ListJoin, _ states: [JobState]) {
        entry.join = join
        var last = ListJoin.Action.none
        var mustCancel = false
        for (index, state) in states.enumerated() where state.isTerminal {
            last = entry.join?.childEnded(index, state) ?? .none
            if last == .cancelRest { mustCancel = true }
        }
        let open = entry.join?.open ?? []
        entry.children = Set(open.filter { active[$0] != nil })
        entry.join?.started = open.count { active[$0]?.isParked == false }
        if join.ids.isEmpty || last == .end { return end(entry) }
        if mustCancel { stopLater(open) }
        if let seconds = entry.job.step?.timeout ?? entry.job.spec.timeout {
            alarms?.set(.list(entry.job.id), in: seconds)
        }
        let early = entry.held
        entry.held = []
        for child in early { queues[child.queue]?.insert(child) }
        pumpAll()
    }

    /// A child is over.
    func childEnded(_ place: Job.Parent, _ child: ActiveJob) {
        guard let entry = active[place.job], entry.job.link == place.link, entry.join != nil else { return }
        entry.endedBytes = entry.endedBytes.saturatingAdding(child.progress.latest?.completed ?? 0)
        entry.join?.started -= 1
        let action = entry.join?.childEnded(place.index, child.job.state) ?? .none
        entry.progress.report(children(of: entry))
        switch action {
        case .none: admitHeld(entry)
        case .cancelRest:
            entry.held = []
            stopLater(entry.join?.open ?? [])
        case .end: end(entry)
        }
    }

    /// A child waits for its retry, and lets a sibling run meanwhile.
    func childPaused(_ place: Job.Parent) {
        guard let entry = active[place.job], entry.join != nil else { return }
        entry.join?.started -= 1
        admitHeld(entry)
    }

    private func admitHeld(_ entry: ActiveJob) {
        guard entry.join?.mayStart == true, !entry.held.isEmpty else { return }
        let next = entry.held.removeFirst()
        queues[next.queue]?.insert(next)
        pump(next.queue)
    }

    /// Every child is over: the list's outcome is made of theirs.
    private func end(_ entry: ActiveJob) {
        guard let join = entry.join else { return }
        closeList(entry)
        entry.run += 1
        let run = entry.run
        // Owned by the engine; it ends with the reads.
        Task {
            let outcome = await self.outcome(of: join, entry.job.id, link: entry.job.link)
            guard active[entry.job.id] === entry, entry.run == run, phase == .serving else { return }
            stepEnded(entry, outcome)
        }
    }

    private func outcome(of join: ListJoin, _ parent: JobID, link: Int) async -> Outcome {
        do {
            switch (join.mode, join.decision) {
            case (_, .succeeded(let index)):
                guard case .success(let value) = try await child(index, parent, link).carried else { break }
                return .success(["index": JSON(index), "value": value])
            case (_, .failed(let index)):
                let job = try await child(index, parent, link)
                let cause = Self.failure(of: job, index)
                var error = JobError(
                    .list, "Child \(index) (job \(job.id)) failed, and with it the list: \(cause.message)")
                error.cause = cause
                return .failure(error)
            case (.settled, nil): return try await gather(join, parent, link) { Self.settled($0, $1) }
            case (.all, nil):
                return try await gather(join, parent, link) { job, _ in (try? job.carried?.get()) ?? .null }
            case (.first, nil):
                var error = JobError(.list, "None of the \(join.ids.count) children succeeded; see failures.")
                var failures: [JobError] = []
                try await eachChild(join, parent, link) { failures.append(Self.failure(of: $0, $1)) }
                error.failures = failures
                return .failure(error)
            }
            return .failure(JobError(.internal, "The list ended without an outcome; retry the job."))
        } catch let error as JobError {
            return .failure(error)
        } catch {
            return .failure(JobError(.storage, "The children of job \(parent) cannot be read: \(error)"))
        }
    }

    private func child(_ index: Int, _ parent: JobID, _ link: Int) async throws -> Job {
        guard let job = try await store.children(of: parent, link: link, from: index, limit: 1).first else {
            throw JobError(.storage, "Child \(index) of job \(parent) is gone; retry the job.")
        }
        return job
    }

    private func eachChild(
        _ join: ListJoin, _ parent: JobID, _ link: Int, _ body: (Job, Int) throws -> Void
    ) async throws {
        var index = 0
        while index < join.ids.count {
            let page = try await store.children(of: parent, link: link, from: index, limit: 256)
            guard !page.isEmpty else {
                throw JobError(.storage, "Child \(index) of job \(parent) is gone; retry the job.")
            }
            for job in page {
                try body(job, index)
                index += 1
            }
        }
    }

    private func gather(
        _ join: ListJoin, _ parent: JobID, _ link: Int, _ element: (Job, Int) -> JSON
    ) async throws -> Outcome {
        var elements: [JSON] = []
        var size = 0
        let limit = settings.limits.body
        try await eachChild(join, parent, link) { job, index in
            let value = element(job, index)
            size += value.size
            guard size <= limit else {
                throw JobError(
                    .tooLarge, "The results of the list are larger than \(limit) bytes; select less of each.")
            }
            elements.append(value)
        }
        return .success(.array(elements))
    }

    private static func settled(_ job: Job, _ index: Int) -> JSON {
        if job.state == .succeeded, case .success(let value) = job.carried { return ["ok": true, "value": value] }
        return ["ok": false, "error": failure(of: job, index).json]
    }

    private static func failure(of job: Job, _ index: Int) -> JobError {
        var error = Job.Stop.cancelled.error
        if case .failure(let failure) = job.carried { error = failure }
        error.job = job.id
        error.index = index
        return error
    }

    /// How far the children of a list are: in bytes where any of them counts bytes, else in finished children.
    func children(of entry: ActiveJob) -> Progress {
        guard let join = entry.join else { return entry.progress.latest ?? Progress(completed: 0, total: nil) }
        var bytes = entry.endedBytes
        var total: Int64? = entry.children.count < join.ids.count - join.endedCount ? nil : bytes
        var countsBytes = bytes > 0
        for id in entry.children {
            guard let child = active[id] else { continue }
            let progress = child.join == nil ? child.progress.latest : children(of: child)
            guard let progress, progress.unit == .bytes else {
                total = nil
                continue
            }
            countsBytes = true
            bytes = bytes.saturatingAdding(progress.completed)
            total = total.flatMap { sum in progress.total.map(sum.saturatingAdding) }
        }
        return countsBytes
            ? Progress(completed: bytes, total: total)
            : Progress(completed: Int64(join.endedCount), total: Int64(join.ids.count), unit: .jobs)
    }
}

extension JobSpec {
    /// The host that its source asks, where that is known.
    var host: String? {
        guard case .source(let source) = source.action else { return nil }
        switch source["type"]?.string.flatMap(SourceType.init(rawValue:)) {
        case .url, .json, .download: return source["url"]?.string.flatMap(SourceLibrary.host(of:))
        default: return nil
        }
    }
}
