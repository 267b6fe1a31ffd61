import JobModel

/// Lists and races: their children and outcomes.
extension Core {
    /// Opens the list of a run's step, or continues the list that a crash left.
    func open(_ new: ListRow, _ old: JobRow, _ live: LiveRun, _ round: Round) throws(StoreError) {
        if let list = try round.transaction.list(of: old.id), list.link == old.link, list.phase == .making {
            // It keeps its original template.
            drop(.list(new))
            if list.made < list.total, list.decided == nil {
                return pending.emit(.makeChildren(live.run, from: list.made))
            }
            pending.emit(.yield(live.run))
            return try made(list, old, live, round)
        }
        if waitingLeft(of: old.owner) < new.total {
            let error = JobError(
                .tooLarge,
                "The list's \(new.total) children would be too many waiting jobs; retry it when some have run.")
            drop(.list(new))
            pending.emit(.yield(live.run))
            release(live)
            return try linkEnded(old, was: old, .failure(error), keepingSlot: false, round)
        }
        var list = new
        list.id = try round.transaction.nextNumber()
        try put(list, round)
        var row = old
        if case .file(let blob)? = new.template {
            row.blobs.append(LinkBlob(link: row.link, blob: blob))
            try store(&row, was: old, round)
        }
        if new.total > 0 { return pending.emit(.makeChildren(live.run, from: 0)) }
        pending.emit(.yield(live.run))
        try made(list, row, live, round)
    }

    /// Inserts the next children of a run's list.
    func add(
        _ children: [NewChildRow], isLast: Bool, _ old: JobRow, _ live: LiveRun, _ round: Round
    ) throws(StoreError) {
        guard var list = try round.transaction.list(of: old.id), list.phase == .making, list.link == old.link else {
            expect(false, "Job \(old.id) makes children of a list that is not open.", job: old.id)
            drop(.children(children, isLast: isLast))
            return cancel(live)
        }
        guard list.decided == nil else {
            // The list is decided and needs no more children.
            drop(.children(children, isLast: isLast))
            pending.emit(.yield(live.run))
            return try made(list, old, live, round)
        }
        let bytes = children.reduce(Int64(0)) { $0 + $1.document.size + JobRow.fixedSize }
        guard try makeRoom(for: bytes, of: old.owner, mayExceed: true, round) else {
            drop(.children(children, isLast: isLast))
            let error = JobError(
                .tooLarge,
                "The list's children cannot be stored: \(quotas.use(of: old.owner, settings)); "
                    + "remove some, then retry it.")
            pending.emit(.yield(live.run))
            release(live)
            try closeList(of: old, round)
            return try linkEnded(old, was: old, .failure(error), keepingSlot: false, round)
        }
        let rows = children.map { child($0, of: old, &list, round) }
        list.made += children.count
        try put(list, round)
        let row = try change(old, round) { $0.children += children.count }
        for row in rows {
            var child = row.row
            child.id = try round.transaction.insert(row)
            try inserted(child, round)
            if child.state.isTerminal { try jobIsOver(child, isInside: false, round) }
        }
        // Failures of invalid children may have decided the list.
        guard let present = try round.transaction.list(of: old.id), present.id == list.id else { return }
        guard isLast || present.decided != nil else {
            return pending.emit(.makeChildren(live.run, from: present.made))
        }
        pending.emit(.yield(live.run))
        try made(present, row, live, round)
    }

    private func child(_ new: NewChildRow, of parent: JobRow, _ list: inout ListRow, _ round: Round) -> NewJobRow {
        let parentage = JobRow.Parent(
            job: parent.id, link: parent.link, list: list.id, index: new.index, depth: (parent.parent?.depth ?? 0) + 1)
        var size = Int(clamping: new.document.size)
        var blobs: [LinkBlob] = []
        if case .item(.file(let blob)) = new.document {
            blobs = [LinkBlob(link: 0, blob: blob)]
            size = 0
        }
        switch new.terms {
        case .success(let terms):
            var row = JobRow(
                terms, owner: parent.owner, groups: parent.groups, parent: parentage, deadline: parent.deadline,
                specSize: new.specSize, storedSpecSize: size, at: round.now)
            row.blobs = blobs
            row.node = terms.node ?? parent.node
            if let concurrency = list.concurrency, list.admitted >= concurrency {
                row.waiting = .gate
            } else {
                list.admitted += 1
            }
            return NewJobRow(row: row, document: new.document)
        case .failure(let error):
            let step = JobPlan.Step(source: .error, timeout: nil, retry: .none)
            var row = JobRow(
                owner: parent.owner, groups: parent.groups, parent: parentage,
                terms: JobTerms(
                    plan: JobPlan(source: step, links: [], deadline: nil), queue: parent.queue,
                    priority: parent.priority, key: nil, tags: []),
                specSize: new.specSize, storedSpecSize: size, createdAt: round.now.wall, state: .failed)
            row.blobs = blobs
            row.carried = .failure(error)
            row.finishedAt = round.now.wall
            return NewJobRow(row: row, document: new.document)
        }
    }

    /// Ends the making of children: the job waits for them without a slot.
    private func made(_ list: ListRow, _ old: JobRow, _ live: LiveRun, _ round: Round) throws(StoreError) {
        release(live)
        var list = list
        let row = try change(old, round) { row in
            row.crashes = 0
            row.wait(for: .children, until: row.step?.timeout.map { round.now.steady(after: $0) })
        }
        list.phase = .open
        try put(list, round)
        if list.unfinished == 0 { try gather(list, row, round) }
    }

    // MARK: - Ends of children

    /// Counts an ended child in its list and admits the next; the list may then be decided or over.
    /// `isInside` is true if the list had admitted the child.
    func childEnded(_ child: JobRow, bytes: Int64, isInside: Bool, _ round: Round) throws(StoreError) {
        guard let parentage = child.parent, var list = try round.transaction.list(of: parentage.job),
            list.id == parentage.list, let parent = try round.transaction.job(parentage.job)
        else { return }
        list.ended += 1
        if isInside { list.admitted -= 1 }
        list.bytes = list.bytes.saturatingAdding(max(0, bytes))
        if child.state != .succeeded { list.failed += 1 }
        if list.decided == nil {
            switch (list.mode, child.state == .succeeded) {
            case (.first, true), (.all, false):
                list.decided = parentage.index
                try add(
                    WorkRow(kind: .cancelChildren, job: parent.id, owner: parent.owner, list: list.id), round)
            default: try letIn(&list, round)
            }
        }
        try put(list, round)
        guard list.phase == .open, list.unfinished == 0 else { return }
        try gather(list, parent, round)
    }

    /// Lets a stopped child past the gate, to continue at a `finally` link.
    func passGate(_ child: JobRow, _ round: Round) throws(StoreError) {
        guard let parent = child.parent, var list = try round.transaction.list(of: parent.job), list.id == parent.list
        else { return }
        list.admitted += 1
        try put(list, round)
    }

    /// Admits the next waiting child of a list.
    private func letIn(_ list: inout ListRow, _ round: Round) throws(StoreError) {
        guard let concurrency = list.concurrency, list.admitted < concurrency,
            let old = try round.transaction.unfinishedChildren(
                of: list.job, list: list.id, areGated: true, after: 0, limit: 1
            ).first
        else { return }
        list.admitted += 1
        try change(old, round) { $0.waiting = .nothing }
    }

    /// Starts the run that composes the outcome, once all children have ended.
    func gather(_ list: ListRow, _ old: JobRow, _ round: Round) throws(StoreError) {
        var list = list
        list.phase = .gathering
        try put(list, round)
        try begin(.gather(list), old, round)
    }

    /// Closes the list of a job's current link; unfinished children are cancelled.
    func closeList(of row: JobRow, _ round: Round) throws(StoreError) {
        guard let list = try round.transaction.list(of: row.id) else { return }
        try round.transaction.closeList(of: row.id)
        pending.emit(.list(row.id, nil))
        guard list.unfinished > 0 else { return }
        try add(WorkRow(kind: .cancelChildren, job: row.id, owner: row.owner, list: list.id), round)
    }
}
