import JobModel

/// Notifications about jobs whose parents are finished and not in memory: who watches these, or their root's tag, is
/// known only once they were read.
extension JobCore {
    /// The notifications about a job that wait for its ancestors to be read.
    struct PendingNotifications {
        /// The job at or above it whose parent is not in memory, and what is known below that.
        let top: JobID
        let missing: JobID
        let known: [Ancestor]
        /// In order.
        var changes: [Change] = []
    }

    /// A change of a job, with the topics that were notified of it at once, and how many subscriptions there had been by
    /// then: whoever came later was shown the job as it was after it.
    struct Change {
        let change: JobChange
        let notified: Set<Int>
        let joins: Int
    }

    /// The most jobs with notifications that wait; those of further jobs are dropped, which happens only while the
    /// store cannot be read.
    private static let mostPending = 4096

    /// Notifies the subscribers of a job of its state. `lineage` is what was read of the jobs above one that left the
    /// memory.
    func notify(_ job: Job, lineage: [Ancestor]? = nil) {
        guard !subscriptions.isEmpty else { return }
        let (known, missing) = table.ancestors(of: job, lineage: lineage)
        var matches = subscriptions.coverage(of: job, parents: known, isWhole: missing == nil).matches
        if pendingNotifications[job.id] != nil || missing != nil && subscriptions.coverDescendants {
            // Whoever is still to be told of an earlier change is told of this one after it.
            matches.removeAll { isBehind($0.topic, of: job.id) }
            tellLater(JobChange(snapshot: snapshots([job])[0]), Set(matches.map(\.topic)), known, missing)
        }
        let subscribers = subscriptions.subscribers(of: matches)
        if !subscribers.isEmpty { emit(.notify(subscribers, JobChange(snapshot: snapshots([job])[0]))) }
        if job.state.isTerminal { subscriptions.finished(job.id) }
    }

    /// Whether a topic may still be told of a change of a job.
    private func isBehind(_ topic: Int, of job: JobID) -> Bool {
        pendingNotifications[job]?.changes.contains { earlier in
            !earlier.notified.contains(topic) && !subscriptions.subscribers(of: topic, since: earlier.joins).isEmpty
        } ?? false
    }

    private func tellLater(_ change: JobChange, _ notified: Set<Int>, _ known: [Ancestor], _ missing: JobID?) {
        let id = change.job
        if pendingNotifications[id] == nil, let missing, pendingNotifications.count < Self.mostPending {
            pendingNotifications[id] = PendingNotifications(top: known.last?.id ?? id, missing: missing, known: known)
            readAncestors(of: id, from: missing, found: [])
        }
        pendingNotifications[id]?.changes.append(Change(change: change, notified: notified, joins: subscriptions.joins))
    }

    /// A job that others wait for as well is read once for all of them: a list may have thousands of children.
    private func readAncestors(of id: JobID, from missing: JobID, found: [Ancestor]) {
        ancestorReads[missing, default: []].append((id, found))
        guard ancestorReads[missing]?.count == 1 else { return }
        read(.jobs([missing])) { [unowned self] result in
            for (id, found) in ancestorReads.removeValue(forKey: missing) ?? [] { ancestorRead(result, of: id, found) }
        }
    }

    private func ancestorRead(_ result: Result<StoreRows, StoreError>, of id: JobID, _ found: [Ancestor]) {
        guard pendingNotifications[id] != nil else { return }
        guard case .success(.jobs(let rows)) = result, let row = rows.first else {
            // Where it was removed, everything below it was, too, and the answer to the removal is about to say so. Where
            // nothing is being written its row is damaged, and is never found.
            if result.failure == nil, pendingWrites == 0 { return pendingNotifications[id] = nil }
            unreadAncestors.append(id)
            return setTimer(.readAgain, in: 1)
        }
        let (above, next) = table.ancestors(of: row, lineage: nil)
        let found = found + [Ancestor(row)] + above
        if let next { return readAncestors(of: id, from: next, found: found) }
        tell(id, found)
    }

    /// Reads what could not be read.
    func readAncestorsAgain() {
        let ids = unreadAncestors
        unreadAncestors = []
        for id in ids {
            if let missing = pendingNotifications[id]?.missing { readAncestors(of: id, from: missing, found: []) }
        }
    }

    /// Notifies of what is still to be told of removed jobs: those above them may be gone with them before they were read, and
    /// then the removal says who they were.
    func tellPending(of removed: [RemovedJob]) {
        guard !pendingNotifications.isEmpty else { return }
        let gone = Dictionary(removed.map { ($0.id, $0) }) { first, _ in first }
        for job in removed {
            guard let pending = pendingNotifications[job.id] else { continue }
            var found: [Ancestor] = []
            var next: JobID? = pending.missing
            while let id = next, let above = gone[id] {
                found.append(Ancestor(id: id, tags: above.tags))
                next = above.parent
            }
            if let id = next {
                // Of one that stays, and is not in memory, the answer to the question is yet to come.
                guard let entry = table[id] else { continue }
                let (above, missing) = table.ancestors(of: entry.job)
                guard missing == nil else { continue }
                found += [Ancestor(entry.job)] + above
            }
            tell(job.id, found)
        }
    }

    private func tell(_ id: JobID, _ found: [Ancestor]) {
        guard let pending = pendingNotifications.removeValue(forKey: id) else { return }
        if let entry = table[pending.top] {
            entry.lineage = found
            // The subscribers of jobs in memory are looked up again, now that their ancestors are known.
            subscriptions.parentCame()
        }
        for later in pending.changes {
            let matches = subscriptions.matches(
                later.change.snapshot.job, parents: pending.known + found, isWhole: true)
            let subscribers = matches.filter { !later.notified.contains($0.topic) }
                .flatMap { subscriptions.subscribers(of: $0.topic, since: later.joins) }
            if !subscribers.isEmpty { emit(.notify(subscribers, later.change)) }
        }
    }
}
