package import JobModel

/// What other nodes have changed.
///
/// Every node decides about every row, as rounds of all nodes follow each other. Only runs belong to a node: the other nodes
/// change the rows of their jobs, and the node stops the runs that its rows do not want any more.
extension Core {
    /// Begins a round, or follows the reset of one: takes in what other nodes have changed, and returns that.
    @discardableResult
    package func open(
        at now: CoreMoment, in transaction: any JobTransaction, isReset: Bool = false
    ) throws(StoreError) -> News? {
        guard let news = try transaction.news() else { return nil }
        let round = Round(transaction: transaction, now: now)
        quotas.replace(news.counts)
        if news.hasQueues { try openQueues(round) }
        for (key, count) in news.counts where key.state == .queued {
            if count.jobs > 0, !scheduler.has(queue: key.queue) {
                openQueue(key.queue)
                showQueues()
            }
            scheduler.rereadStored(queue: key.queue, owner: key.owner, hasJobs: count.jobs > 0)
        }
        if news.hasSchedules {
            quotas.schedules = try transaction.scheduleCounts()
            // The node that set them may have no room when they are due.
            try lookAhead(round)
        }
        for work in news.work { pending.waits.append(.happened(.work(work))) }
        if news.hasLostRuns { try takeOverNode(isReset: isReset, round) }
        try changedElsewhere(news.jobs, round)
        if !news.hasMore { experience.told = [:] }
        return news
    }

    /// Goes on with what a node left that is gone.
    private func takeOverNode(isReset: Bool, _ round: Round) throws(StoreError) {
        if !isReset {
            agenda.hasWork = true
            agenda.hasExcess = true
            try lookAhead(round)
            try cleanAgain(round)
        }
        try takeOver(isCrash: true, round)
        try schedulesStarted(round)
    }

    /// Tells this node's clients and runs of jobs that other nodes have changed.
    private func changedElsewhere(_ jobs: [JobID], _ round: Round) throws(StoreError) {
        let jobs = jobs.filter(isOfInterest)
        guard !jobs.isEmpty else { return }
        try round.transaction.load(jobs.map(RowKey.job))
        // A list's end comes after those of its children, whose ids are higher.
        for job in jobs.sorted(by: >) {
            let row = try round.transaction.job(job)
            if let live = running.run(of: job) {
                stopIfNeeded(live, row)
                if let row, row.run == live.run { pending.emit(.setRate(live.run, row.rate)) }
            }
            if row?.hasStoppingRun != true { pending.waits.append(.happened(.stop(job))) }
            if let row, !row.isRemoving {
                if experience.told.updateValue(row.version, forKey: job) == row.version { continue }
                try tell(row, round)
                guard row.state.isTerminal else { continue }
            } else {
                pending.emit(.gone(job, for: nil))
            }
            pending.end(job, toldTo: subscriptions.naming(job))
        }
    }

    private func isOfInterest(_ job: JobID) -> Bool {
        !subscriptions.isEmpty || running.run(of: job) != nil || waits.isAwaited(.end(job))
            || waits.isAwaited(.stop(job))
    }

    /// Tells clients the present state of the jobs that they name, as what happened to these meanwhile is not known; those that
    /// watch others have to begin again.
    package func tellAgain(at now: CoreMoment, in transaction: any JobTransaction) throws(StoreError) {
        try changedElsewhere(waits.jobs + subscriptions.named, Round(transaction: transaction, now: now))
        for id in waits.work where try transaction.work(after: id - 1, limit: 1).first?.id != id {
            pending.waits.append(.happened(.work(id)))
        }
        pending.emit(.missed(subscriptions.coveringOthers))
    }
}
