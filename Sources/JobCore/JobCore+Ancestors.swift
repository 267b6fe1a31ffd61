import JobModel

/// Telling of jobs whose parents are over and have left the memory: who watches these, or their root's tag, is known only
/// once they were read.
extension JobCore {
    /// What is still to be told of a job.
    struct Untold {
        /// The job at or above it whose parent is not in memory, and what is known below that.
        let top: JobID
        let missing: JobID
        let known: [Ancestor]
        /// In order, each with the topics that were told at once.
        var changes: [(change: JobChange, told: Set<Int>)] = []
    }

    /// Jobs of which something is still to be told; of further ones it is not, which takes a store that cannot be read.
    private static let mostUntold = 4096

    /// Tells those who watch a job of its state. `lineage` is what was read of the jobs above one that left the memory.
    func notify(_ job: Job, lineage: [Ancestor]? = nil) {
        guard !subscriptions.isEmpty else { return }
        let (known, missing) = table.ancestors(of: job, lineage: lineage)
        let matches = subscriptions.matches(job, parents: known, isWhole: missing == nil)
        let subscribers = matches.flatMap { subscriptions.subscribers(of: $0.topic) }
        if untold[job.id] != nil || missing != nil && subscriptions.coverDescendants {
            tellLater(JobChange(snapshot: snapshots([job])[0]), Set(matches.map(\.topic)), known, missing)
        }
        if !subscribers.isEmpty { emit(.notify(subscribers, JobChange(snapshot: snapshots([job])[0]))) }
        if job.state.isTerminal { subscriptions.finished(job.id) }
    }

    private func tellLater(_ change: JobChange, _ told: Set<Int>, _ known: [Ancestor], _ missing: JobID?) {
        let id = change.job
        if untold[id] == nil, let missing, untold.count < Self.mostUntold {
            untold[id] = Untold(top: known.last?.id ?? id, missing: missing, known: known)
            readAncestors(of: id, from: missing, found: [])
        }
        untold[id]?.changes.append((change, told))
    }

    private func readAncestors(of id: JobID, from missing: JobID, found: [Ancestor]) {
        read(.jobs([missing])) { [unowned self] result in
            guard untold[id] != nil else { return }
            guard case .success(.jobs(let rows)) = result else {
                unreadAncestors.append(id)
                return setTimer(.readAgain, in: 1)
            }
            // Where it was removed, so was all below it.
            guard let row = rows.first else { return untold[id] = nil }
            let (above, next) = table.ancestors(of: row, lineage: nil)
            let found = found + [Ancestor(row)] + above
            if let next { return readAncestors(of: id, from: next, found: found) }
            tell(id, found)
        }
    }

    /// Reads what could not be read.
    func readAncestorsAgain() {
        let ids = unreadAncestors
        unreadAncestors = []
        for id in ids {
            if let missing = untold[id]?.missing { readAncestors(of: id, from: missing, found: []) }
        }
    }

    private func tell(_ id: JobID, _ found: [Ancestor]) {
        guard let untold = untold.removeValue(forKey: id) else { return }
        if let entry = table[untold.top] {
            entry.lineage = found
            // Of jobs in memory it is known now who watches them.
            subscriptions.parentCame()
        }
        for (change, told) in untold.changes {
            let matches = subscriptions.matches(
                change.snapshot.job, parents: untold.known + found, isWhole: true)
            let subscribers = matches.filter { !told.contains($0.topic) }
                .flatMap { subscriptions.subscribers(of: $0.topic) }
            if !subscribers.isEmpty { emit(.notify(subscribers, change)) }
        }
    }
}
