import DataSources
import DeferredKit
import Logging
import Dispatch
import JobModel
import JobStore

/// Storing what became of jobs, and what follows.
extension JobEngine {
    /// Stores a job, and carries `action` out once that is durable.
    func save(_ entry: ActiveJob, then action: Job.Action) {
        let id = entry.job.id
        entry.unsaved = action
        entry.saves += 1
        let save = entry.saves
        if action == .wait { entry.job.host = nextHost(of: entry) }
        store.save([entry.job]) { result in self.enter { $0.saved(id, save, result) } }
    }

    private func saved(_ id: JobID, _ save: Int, _ result: Result<Void, StoreError>) {
        // Of several on their way only the last one counts: it holds the job as it is now.
        guard let entry = active[id], entry.saves == save, let action = entry.unsaved else { return }
        if case .failure(let error) = result { return storageFailed(error) }
        entry.unsaved = nil
        carryOut(action, entry)
    }

    private func carryOut(_ action: Job.Action, _ entry: ActiveJob) {
        switch action {
        case .run, .interrupt(thenRun: true):
            emit(entry)
            runStep(entry)
        case .wait:
            totals[entry.job.owner, default: EngineTotals()].retried += 1
            release(entry.job.id)
            emit(entry)
            if let parent = entry.job.parent { childPaused(parent) }
            if let time = entry.job.notBefore { wallAlarms?.setEarlier(.due, in: time.seconds(since: clock.now())) }
        case .finish, .interrupt(thenRun: false): finish(entry)
        case .enqueue:
            release(entry.job.id)
            emit(entry)
            enqueue(entry.job)
        case .none: break
        }
    }

    /// A job is over, and that is stored.
    private func finish(_ entry: ActiveJob) {
        let job = entry.job
        switch job.state {
        case .succeeded: totals[job.owner, default: EngineTotals()].succeeded += 1
        case .failed: totals[job.owner, default: EngineTotals()].failed += 1
        default: totals[job.owner, default: EngineTotals()].cancelled += 1
        }
        emit(entry)
        release(job.id)
        for wait in waits.ended(job.id) { answer(wait) }
        if let parent = job.parent {
            childEnded(parent, entry)
        } else {
            // There may be too many now.
            alarms?.setEarlier(.retention, in: Self.purgeInterval)
        }
    }

    // MARK: - A storage that fails

    func storageFailed(_ error: StoreError) {
        guard storageFailure == nil, phase == .serving else { return }
        storageFailure = error.message
        statusChanged()
        logger.error("Nothing can be stored; no new jobs until that works again.", metadata: ["error": "\(error)"])
        alarms?.set(.storage, in: 1)
    }

    func storageAnswered(_ result: Result<Void, StoreError>) {
        switch result {
        case .failure(let error):
            storageFailed(error)
            alarms?.set(.storage, in: 1)
        case .success:
            guard storageFailure != nil else { return }
            storageFailure = nil
            statusChanged()
            logger.notice("Storing works again.")
            for entry in active.values {
                if let action = entry.unsaved { save(entry, then: action) }
            }
            pumpAll()
        }
    }

    // MARK: - Alarms

    func ring(wall: Bool) {
        for alarm in (wall ? wallAlarms : alarms)?.takeDue() ?? [] { ring(alarm) }
    }

    private func ring(_ alarm: Alarm) {
        guard phase == .serving else { return }
        switch alarm {
        case .due: Task { await startDue() }  // Owned by the engine; it ends with the reads.
        case .deadline: Task { await stopOverdue() }  // Likewise.
        case .host(let host):
            hosts.release(host)
            pumpAll()
        case .progress(let interval): report(interval)
        case .wait(let wait):
            if let wait = waits.expired(wait) {
                wait.done(.failure(EngineError(.timeout, "The wait ran out of time.")))
            }
        case .list(let job): listTimedOut(job)
        case .retention: purge()
        case .status: reportStatus()
        case .storage: store.probe { result in self.enter { $0.storageAnswered(result) } }
        }
    }

    /// Sets the alarms for what the store says comes next.
    func setTimes(_ times: (due: Timestamp?, deadline: Timestamp?)) {
        let now = clock.now()
        if let due = times.due { wallAlarms?.setEarlier(.due, in: due.seconds(since: now)) }
        if let deadline = times.deadline { wallAlarms?.setEarlier(.deadline, in: deadline.seconds(since: now)) }
    }

    private func startDue() async {
        let read = fence.begin()
        defer { fence.end(read) }
        do {
            for job in try await store.due(at: clock.now(), limit: 1000) where isCurrent(job.id, in: read) {
                let entry = hold(job)
                if (try? handle(entry, .due)) != nil { save(entry, then: .enqueue) } else { release(job.id) }
            }
            // One whose change is still being stored is found again, so not at once.
            if let next = try await store.nextTimes().due {
                wallAlarms?.setEarlier(.due, in: max(0.05, next.seconds(since: clock.now())))
            }
        } catch {
            logger.error("The scheduled jobs cannot be read.", metadata: ["error": "\(error)"])
            wallAlarms?.setEarlier(.due, in: 1)
        }
    }

    private func stopOverdue() async {
        do {
            let jobs = try await store.overdue(at: clock.now(), limit: 1000)
            for job in jobs { try? await stop(job.id, .deadline) }
            let next = try await store.nextTimes().deadline
            // One whose end is still being stored is found again, so not at once.
            if let next { wallAlarms?.setEarlier(.deadline, in: max(0.1, next.seconds(since: clock.now()))) }
        } catch {
            logger.error("The deadlines cannot be read.", metadata: ["error": "\(error)"])
            wallAlarms?.setEarlier(.deadline, in: 1)
        }
    }

    // MARK: - Old jobs

    /// Seconds from the end of a job, or from a purge that found nothing, to the next purge at the earliest.
    private static let purgeInterval = 60.0

    func purge() {
        let before = clock.now().adding(seconds: -settings.retentionAge)
        store.purge(finishedBefore: before, keeping: settings.retentionCount, atMost: 500) { result in
            self.enter { $0.purged(result) }
        }
    }

    private func purged(_ result: Result<[RemovedJob], StoreError>) {
        switch result {
        case .failure: alarms?.set(.retention, in: Self.purgeInterval)
        case .success(let removed):
            guard !removed.isEmpty else {
                // Owned by the engine; it ends with the read.
                Task { await awaitNextExpiry() }
                return
            }
            forget(removed)
            // Owned by the engine; it ends with the removal of the files.
            Task { await discardParts(of: removed) }
            alarms?.set(.retention, in: 0.05)
        }
    }

    /// Sets the alarm for when the next finished job is too old; where there is none, the next one that ends sets it.
    private func awaitNextExpiry() async {
        let first: Timestamp?
        do {
            first = try await store.firstEnd()
        } catch {
            logger.error("The finished jobs cannot be read.", metadata: ["error": "\(error)"])
            alarms?.set(.retention, in: Self.purgeInterval)
            return
        }
        guard let first else { return }
        let expiry = first.adding(seconds: settings.retentionAge)
        wallAlarms?.set(.retention, in: max(Self.purgeInterval, expiry.seconds(since: clock.now())))
    }

    /// Removes what unfinished downloads of removed jobs have kept for a retry.
    func discardParts(of removed: [RemovedJob]) async {
        for job in removed {
            for note in job.notes { await library.discard(note, owner: job.owner) }
        }
    }

    /// Drops what is known of jobs that the store removed, their bodies among it.
    func forget(_ removed: [RemovedJob]) {
        for job in removed {
            counters.remove(job)
            if let entry = active[job.id] {
                entry.run += 1
                entry.work?.cancel()
                closeList(entry)
                leave(entry)
                release(job.id)
            }
            queues[job.queue]?.remove(job.id)
        }
        guard !removed.isEmpty else { return }
        let bodies = BodyFolder(path: settings.bodies)
        bodyQueue.async {
            for job in removed { bodies.remove(job.id, upTo: job.links) }
        }
    }

    /// Removes the bodies of jobs that a daemon had removed when it was killed.
    func removeForgottenBodies() {
        let bodies = BodyFolder(path: settings.bodies)
        let links = settings.limits.links
        bodyQueue.async {
            let found = bodies.jobs().sorted()
            guard !found.isEmpty else { return }
            // Owned by the engine; it ends with the reads.
            Task {
                var forgotten = 0
                for start in stride(from: 0, to: found.count, by: 256) {
                    let page = Array(found[start..<min(start + 256, found.count)])
                    guard let jobs = try? await self.store.jobs(numbered: page) else { return }
                    let lost = Set(page).subtracting(jobs.map(\.id))
                    forgotten += lost.count
                    self.bodyQueue.async {
                        for job in lost { bodies.remove(job, upTo: links) }
                    }
                }
                guard forgotten > 0 else { return }
                self.bodyQueue.async { [forgotten] in
                    self.logger.notice("Bodies of removed jobs were left over.", metadata: ["removed": "\(forgotten)"])
                }
            }
        }
    }
}
