import DeferredKit
package import JobModel
import JobStore

/// Cancelling, and passing deadlines.
extension JobEngine {
    /// Cancels a job and everything below it.
    package func cancel(_ id: JobID, for caller: Caller) async throws(EngineError) -> JSON {
        let job = try await visible(id, to: caller)
        guard !job.state.isTerminal else {
            throw EngineError(
                .wrongState(job.state), "Job \(id) is over (\(job.state.rawValue)); there is nothing to cancel.")
        }
        try await stop(id, .cancel)
        return try await self.job(id, for: caller)
    }

    /// Cancels jobs that nobody waits for.
    func stopLater(_ ids: [JobID]) {
        guard !ids.isEmpty else { return }
        for id in ids {
            if let entry = active[id] { stop(entry, .cancel) }
        }
        let rest = ids.filter { active[$0] == nil }
        guard !rest.isEmpty else { return }
        // Owned by the engine; it ends with the reads.
        Task {
            var start = 0
            while start < rest.count, phase == .serving {
                let page = Array(rest[start..<min(start + 512, rest.count)])
                start += page.count
                let read = fence.begin()
                for job in (try? await store.jobs(numbered: page)) ?? [] { stop(stored: job, .cancel, read) }
                fence.end(read)
            }
        }
    }

    func stop(_ id: JobID, _ event: Job.Event) async throws(EngineError) {
        guard phase == .serving else { throw .stopping }
        if let entry = active[id] { return stop(entry, event) }
        let read = fence.begin()
        defer { fence.end(read) }
        let job: Job?
        do { job = try await store.job(id) } catch { throw EngineError(error) }
        if let job { stop(stored: job, event, read) }
    }

    /// Stops a job as it was read; it may have come into memory, or to its end, since.
    private func stop(stored job: Job, _ event: Job.Event, _ read: ReadFence.Read) {
        if let entry = active[job.id] { return stop(entry, event) }
        guard !job.state.isTerminal else { return }
        // It changed since: it is looked at once more.
        if fence.isOld(job.id, in: read) { return stopLater([job.id]) }
        queues[job.spec.queue]?.remove(job.id)
        if let parent = job.parent { active[parent.job]?.held.removeAll { $0.position.id == job.id } }
        stop(hold(job), event)
    }

    private func stop(_ entry: ActiveJob, _ event: Job.Event) {
        if entry.isParked {
            entry.isParked = false
            queues[entry.job.spec.queue]?.remove(entry.job.id)
        }
        let isPaused = isPausedDownload(entry)
        let before = entry.job
        let action: Job.Action
        do { action = try handle(entry, event) } catch { return }  // It is over, and that is being stored.
        switch action {
        case .interrupt, .finish, .run:
            entry.run += 1
            entry.work?.cancel()
            entry.work = nil
            let children = entry.join?.open ?? []
            closeList(entry)
            leave(entry)
            stopLater(children)
            guard isPaused else { return save(entry, then: action) }
            let id = entry.job.id
            discardPart(of: before) { engine in
                if let entry = engine.active[id] { engine.save(entry, then: action) }
            }
        case .enqueue, .wait, .none: break
        }
    }
}

extension EngineError {
    init(_ error: StoreError) {
        self.init(.storage, error.message)
    }
}
