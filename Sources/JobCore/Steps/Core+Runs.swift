package import JobModel

/// Run events.
extension Core {
    func handle(_ event: RunEvent, of id: RunID, _ round: Round) throws(StoreError) {
        guard let live = running[id] else {
            // The row of a job that was taken over may name its files by now.
            if id.life == life { drop(event) }
            return
        }
        // The host asked to be left alone, even if the job was held or removed meanwhile.
        if case .ended(let end) = event, let error = end.outcome.error { pause(for: error, of: live, round) }
        let row = try round.transaction.job(live.job)
        guard let row, row.run == id else {
            // Its job was removed or is unreadable. Only its end matters, because it frees the slot and permits.
            switch event {
            case .ended, .timer, .job:
                release(live)
                agenda.hasClearedSuspect = true
                pending.waits.append(.happened(.stop(live.job)))
            default: cancel(live)
            }
            return drop(event)
        }
        let mayGoOn = !row.isEnding && row.state != .held && phase == .serving
        switch event {
        case .ended(let end) where row.state == .held && phase == .serving: try heldRunEnded(row, live, end, round)
        case .ended(let end):
            // A source that the stop interrupted is repeated after it; what must not be repeated keeps its outcome.
            guard phase == .serving || row.step?.isRepeatable == false && end.outcome.error?.kind != .cancelled else {
                return
            }
            try runEnded(row, live, end, round)
        case .refused(let error): pause(for: error, of: live, round)
        case .checkpoint(let text, _):
            var changed = row
            if !row.isEnding { try store(checkpoint: text, of: &changed, round) }
            if changed != row { try store(&changed, was: row, round) }
        case .download(let path, let record, _): try round.transaction.save(download: record, to: path)
        case .timer where row.isEnding, .job where row.isEnding:
            try runEnded(row, live, RunEnd(.success(.null)), round)
        case .timer(let seconds): try wait(seconds, row, live, round)
        case .job(let target): try wait(for: target, row, live, round)
        case .host(let host, let connections) where mayGoOn: try wants(host, connections, row, live, round)
        case .elsewhere(let node) where mayGoOn: try leave(to: node, row, live, round)
        case .list(let list) where mayGoOn: try open(list, row, live, round)
        case .children(let children, let isLast) where mayGoOn: try add(children, isLast: isLast, row, live, round)
        // A run told to stop may only end.
        case .host, .elsewhere, .list, .children: drop(event)
        }
    }

    /// Drops an event, and removes its files.
    func drop(_ event: RunEvent) {
        let files = event.files
        if !files.isEmpty { pending.emit(.unlink(files)) }
    }

    /// Frees the slot and permits of a run that does not continue its job.
    func release(_ live: LiveRun) {
        if let run = running.remove(live.run) { scheduler.release(run) }
    }

    // MARK: - Hosts

    /// Handles a step that needs a host for which its run has no permit.
    private func wants(
        _ host: String, _ connections: Int, _ old: JobRow, _ live: LiveRun, _ round: Round
    ) throws(StoreError) {
        var live = live
        if let before = live.host, before != host {
            scheduler.release(live.permits, before, live.owner)
            live.host = nil
            live.permits = 0
        }
        let permits =
            live.host == host
            ? scheduler.acquireSpare(host, for: live.owner, atMost: connections - live.permits)
            : scheduler.acquire(
                host, for: live.owner, atMost: connections, despitePause: old.lastFailure?.http != nil)
        live.permits += permits
        live.host = live.permits > 0 ? host : nil
        running.update(live)
        if live.permits > 0 { return pending.emit(.proceed(live.run, host: host, connections: live.permits)) }
        try unbegin(old, was: old, live, waitingFor: host, round)
    }

    /// Leaves a job to a node that has its program.
    private func leave(to node: String, _ old: JobRow, _ live: LiveRun, _ round: Round) throws(StoreError) {
        var row = old
        row.node = node
        try unbegin(row, was: old, live, round)
    }

    private func unbegin(
        _ changed: JobRow, was old: JobRow, _ live: LiveRun, waitingFor host: String? = nil, _ round: Round
    ) throws(StoreError) {
        release(live)
        var row = changed
        row.unbegin(waitingFor: host)
        try store(&row, was: old, round)
        pending.emit(.yield(live.run))
    }

    /// Pauses, for this owner, the host that asked for it: the run's host, or one that it redirected to.
    private func pause(for error: JobError, of live: LiveRun, _ round: Round) {
        guard let seconds = error.retryAfter, seconds > 0, let host = error.retryAfterHost ?? live.host else { return }
        let time = round.now.steady(after: min(seconds, settings.longestBackOff))
        scheduler.pause(host, for: live.owner, until: time)
    }

    // MARK: - Timers

    /// Lets the job of a run wait for a time without a slot.
    private func wait(_ seconds: Double, _ old: JobRow, _ live: LiveRun, _ round: Round) throws(StoreError) {
        var row = old
        guard seconds > 0 else { return try runEnded(old, live, RunEnd(.success(.null)), round) }
        let timeout = row.step?.timeout
        row.wait(
            for: timeout.map { $0 < seconds } ?? false ? .timeout : .timer,
            until: round.now.steady(after: min(seconds, timeout ?? seconds)))
        try store(&row, was: old, round)
        release(live)
    }

    // MARK: - Ends

    /// Ends a run and its current link.
    func runEnded(_ old: JobRow, _ live: LiveRun, _ end: RunEnd, _ round: Round) throws(StoreError) {
        // Frees the permits; the next link may keep the slot.
        _ = running.remove(live.run)
        if let host = live.host { scheduler.release(live.permits, host, live.owner) }
        var row = old
        // A refused result is not kept.
        let refusal = try refusal(toKeep: end, row, round)
        if refusal == nil {
            row.blobs += end.values.map { LinkBlob(link: row.link, blob: $0) }
        } else if !end.values.isEmpty {
            pending.emit(.unlink(end.values))
        }
        // An attempt without output has none in place of that of the attempt before it.
        let isSilent = end.output == nil && row.hasOutput(of: row.link)
        if let output = isSilent ? live.run.output() : end.output { keep(output, in: &row) }
        if row.presentSource == .download, row.checkpointSize > 0, end.outcome.error == nil {
            try store(checkpoint: nil, of: &row, round)
        }
        // Its file is on this node.
        if row.presentSource == .download, end.outcome.error == nil {
            (row.node, row.followsPart) = (row.node ?? settings.node, false)
        }
        if row.presentSource?.hasChildren == true { try closeList(of: row, round) }
        if let url = end.url { row.url = url }
        let outcome = refusal.map(Carried.failure) ?? end.outcome
        try linkEnded(row, was: old, outcome, keepingSlot: live.hasSlot, bytes: end.bytes, round)
    }

    /// Ends the current link of a job without a run; `keepingSlot` if the job holds a slot of its queue. The stored row is
    /// `old`.
    func linkEnded(
        _ changed: JobRow, was old: JobRow, _ outcome: Carried, keepingSlot: Bool, bytes: Int64 = 0, _ round: Round
    ) throws(StoreError) {
        var row = changed
        let link = row.link
        let isDownload = row.presentSource == .download
        row.finished(outcome, at: round.now)
        // A retry of a server's answer has waited as its own policy says and must not also wait for the host's pause.
        if row.state == .scheduled, row.lastFailure?.http != nil { row.host = nil }
        var mustClean = false
        if row.state == .succeeded || row.state == .cancelled, row.checkpointSize > 0 {
            _ = try removeParts(of: &row, links: 0...Int.max, round)
        } else if isDownload, row.state == .running, row.checkpointSize > 0 {
            // The failure was caught, so nothing resumes from the partial file.
            mustClean = try removeParts(of: &row, links: link...link, round) != nil
        }
        if row.state == .running {
            log(row, .linkEnded(link, outcome.error), round)
            return try goOn(&row, was: old, hasSlot: keepingSlot, mustClean: mustClean, round)
        }
        if keepingSlot { scheduler.releaseSlot(row.queue, row.owner) }
        if row.state == .scheduled {
            experience.count(row.owner) { $0.retried += 1 }
            // A job that waits for room may retry very often: only the first retry is logged.
            if let error = row.lastFailure, error.postponed == nil || old.lastFailure?.postponed == nil,
                let due = row.due
            {
                log(row, .retrying(in: Double(max(0, due - round.now.steady)) / 1000, error), round)
            }
        }
        try store(&row, was: old, round)
        if row.state.isTerminal { try jobIsOver(row, bytes: bytes, round) }
    }

    /// Continues a job at its next link: in its slot if it may keep it, otherwise as a ready job.
    private func goOn(
        _ row: inout JobRow, was old: JobRow, hasSlot: Bool, mustClean: Bool, _ round: Round
    ) throws(StoreError) {
        row.deadline = try deadline(of: row, round)
        let isOverdue = row.isOverdue(at: round.now)
        let mustStop = isOverdue ? true : try isBelowStopped(row, round)
        if hasSlot, !mustStop, !mustClean, phase == .serving,
            scheduler.keepSlot(row.queue, row.owner, at: round.now.steady)
        {
            return try begin(&row, was: old, round)
        }
        if hasSlot { scheduler.releaseSlot(row.queue, row.owner) }
        row.state = .queued
        row.waiting = mustClean ? .cleaning : .nothing
        // After a timer, most jobs start in the same round.
        try store(&row, was: old, isPassing: !mustStop, round)
        if mustStop { try stop(row, isOverdue ? .deadline : .cancelled, round) }
    }

    /// Ends a job; `isInside` is true for a child that its list had admitted.
    func jobIsOver(
        _ row: JobRow, bytes: Int64 = 0, isInside: Bool = true, _ round: Round
    ) throws(StoreError) {
        pending.end(row.id, toldTo: subscriptions.naming(row.id))
        experience.count(row.owner) { totals in
            switch row.state {
            case .succeeded: totals.succeeded += 1
            case .failed: totals.failed += 1
            default: totals.cancelled += 1
            }
        }
        log(row, row.end, round)
        try settleDependencies(of: row, round)
        if row.parent != nil { return try childEnded(row, bytes: bytes, isInside: isInside, round) }
        noteEnd(of: row, round)
        if row.notifies { pending.emit(.tellHook(row.id, owner: row.owner)) }
        try recheckSchedule(of: row, round)
    }

    /// Notes that retention may remove a finished root job.
    func noteEnd(of row: JobRow, _ round: Round) {
        if quotas.hasExcess(settings) { agenda.hasExcess = true }
        let expiry = (row.finishedAt ?? round.now.wall).adding(seconds: settings.retentionAge)
        agenda.nextExpiry = min(agenda.nextExpiry ?? expiry, expiry)
    }

    /// Returns why a result is not kept: its owner has too much stored.
    func refusal(toKeep end: RunEnd, _ row: JobRow, _ round: Round) throws(StoreError) -> JobError? {
        let size = end.outcome.size.saturatingAdding(end.body?.size ?? 0)
        guard end.outcome.error == nil, size > StoredValue.null.size else { return nil }
        guard try !makeRoom(for: size, of: row.owner, mayExceed: true, round) else { return nil }
        return JobError(
            .tooLarge,
            "The result cannot be kept: \(quotas.use(of: row.owner, settings)); remove some, then retry the job.")
    }

    // MARK: - Output of programs

    /// The attempts of a link whose output is kept.
    private static let keptOutputs = 10

    /// Adds the output of the present attempt, and drops that of the oldest.
    func keep(_ output: BlobReference, in row: inout JobRow) {
        row.blobs.append(LinkBlob(link: row.link, blob: output, attempt: max(1, row.attempt)))
        let outputs = row.blobs.filter { $0.isOutput && $0.link == row.link }
        guard outputs.count > Self.keptOutputs, let oldest = outputs.first else { return }
        row.blobs.removeAll { $0 == oldest }
        pending.emit(.unlink([oldest.blob]))
    }

    /// Stores the size of the output of a lost run, or forgets it if there is none.
    func measured(_ job: JobID, _ output: BlobReference, _ round: Round) throws(StoreError) {
        guard let old = try round.transaction.job(job),
            let index = old.blobs.firstIndex(where: { $0.isOutput && $0.blob.name == output.name })
        else { return }
        var row = old
        let found = row.blobs.remove(at: index)
        if output.size > 0 || row.hasOutput(of: found.link) {
            row.blobs.insert(LinkBlob(link: found.link, blob: output, attempt: found.attempt), at: index)
        }
        try store(&row, was: old, round)
    }

    // MARK: - Checkpoints

    /// Stores the checkpoint of a job's current link; nil drops it.
    private func store(checkpoint: [UInt8]?, of row: inout JobRow, _ round: Round) throws(StoreError) {
        let link = row.link
        let before = try round.transaction.checkpoints(of: row.id, fromLink: link).first { $0.link == link }
        try round.transaction.save(checkpoint: checkpoint, of: row.id, link: link)
        row.checkpointSize = max(0, row.checkpointSize + (checkpoint?.count ?? 0) - (before?.text.count ?? 0))
        // Its part is on this node.
        if checkpoint != nil, row.node == nil, let node = settings.node { (row.node, row.followsPart) = (node, true) }
        if row.checkpointSize == 0 { row.leavePart() }
    }

    /// Requests removal of the partial files of these links; returns nil if there are none.
    func removeParts(of row: inout JobRow, links: ClosedRange<Int>, _ round: Round) throws(StoreError) -> WorkID? {
        let checkpoints = try round.transaction.checkpoints(of: row.id, fromLink: links.lowerBound)
            .filter { links.contains($0.link) }
        guard !checkpoints.isEmpty else { return nil }
        var payload: [UInt8] = []
        for (link, text) in checkpoints {
            payload.append(payload.isEmpty ? UInt8(ascii: "[") : UInt8(ascii: ","))
            payload += text
            try round.transaction.save(checkpoint: nil, of: row.id, link: link)
            row.checkpointSize = max(0, row.checkpointSize - text.count)
        }
        if row.checkpointSize == 0 { row.leavePart() }
        payload.append(UInt8(ascii: "]"))
        return try add(
            WorkRow(
                kind: .removeParts, job: row.id, owner: row.owner, position: Int64(links.lowerBound), payload: payload),
            round
        ).id
    }

    /// Handles a finished removal of files; a job that waited for it continues.
    func cleaned(_ id: WorkID, _ round: Round) throws(StoreError) {
        experience.cleaning.remove(id)
        guard let work = try round.transaction.work(after: id - 1, limit: 1).first, work.id == id else { return }
        try end(work, round)
        try goOnIfClean(work.job, round)
    }

    /// Continues a job once the last of its earlier files and children are removed.
    func goOnIfClean(_ job: JobID, _ round: Round) throws(StoreError) {
        guard let old = try round.transaction.job(job), old.waiting == .cleaning,
            try !round.transaction.hasWork(.removeParts, of: job),
            try !round.transaction.hasWork(.removeChildren, of: job)
        else { return }
        try change(old, round) { $0.waiting = .nothing }
    }
}

extension JobRow {
    /// The source type of its current link, even while it is being stopped.
    package var presentSource: SourceType? { plan.step(link, for: carried)?.source }

    fileprivate var end: CoreLog.Event {
        switch (state, carried) {
        case (.succeeded, _): .succeeded
        case (.cancelled, _): .cancelled
        case (_, .failure(let error)): .failed(error)
        default: .failed(JobError(.internal, "It has no error."))
        }
    }
}
