import JobModel

/// Downloads over several connections, while they run.
extension JobCore {
    /// Asks downloads for connections that other jobs wait for: one for each host at a time, of the run that has the most, so that
    /// there are never more asked for than there are jobs.
    func reclaimConnections() {
        guard !spareRuns.isEmpty else { return }
        var richest: [ConcurrencyKey: ActiveJob] = [:]
        var busy: Set<ConcurrencyKey> = []
        for run in spareRuns.sorted() {
            guard let entry = runs[run].flatMap({ table[$0] }), let key = entry.sparePermits.first?.key else {
                continue
            }
            if entry.isClosingConnection { busy.insert(key) }
            if entry.sparePermits.count > richest[key]?.sparePermits.count ?? 0 { richest[key] = entry }
        }
        let wanted = richest.filter { !busy.contains($0.key) && scheduler.wantsPermit($0.key) }
        for entry in wanted.values.sorted(by: { $0.job.id < $1.job.id }) {
            guard let run = entry.run else { continue }
            entry.isClosingConnection = true
            emit(.reclaimConnection(run))
        }
    }

    func connectionClosed(_ run: RunID) {
        guard let entry = runs[run].flatMap({ table[$0] }), entry.run == run, entry.isClosingConnection,
            let permit = entry.sparePermits.popLast()
        else { return }
        entry.isClosingConnection = false
        if entry.sparePermits.isEmpty { spareRuns.remove(run) }
        scheduler.release(permit)
    }

    /// Backs off from the host for all other jobs.
    func refused(_ run: RunID, _ error: JobError) {
        guard let entry = runs[run].flatMap({ table[$0] }), entry.run == run else { return }
        backOff(entry, error)
    }
}
