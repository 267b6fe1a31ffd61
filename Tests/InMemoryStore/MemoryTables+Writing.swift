import JobModel

extension MemoryTables {
    // MARK: Inserting

    mutating func submit(_ job: Job) -> Submission {
        let key = job.parent == nil ? job.spec.key.map { NamedID($0, Int64(job.owner)) } : nil
        if let earlier = key.flatMap({ keys[$0] }).flatMap({ rows[$0] }) {
            let isSame = if case .whole = earlier.body { earlier.job.spec == job.spec } else { false }
            return isSame ? .joined(earlier.job.id, earlier.job.state) : .conflict(earlier.job.id)
        }
        let id = insert(
            Row(
                job: job, body: .whole, queue: job.spec.queue, priority: job.spec.priority,
                source: job.spec.source.type?.rawValue ?? "", tags: job.spec.tags, size: job.storedSize))
        if let key { keys.set(key, id) }
        return .created(id)
    }

    mutating func insert(_ new: NewChildren) -> [JobID] {
        guard save(new.parent) else { return [] }
        let parent = new.parent
        if let template = new.template {
            templates.set(
                LinkKey(job: parent.id, link: parent.link), Template(json: template, size: Int64(template.size)))
        }
        return new.children.map { child in
            let (job, body) = child.stored(of: parent)
            return insert(
                Row(
                    job: job, body: body, queue: child.queue, priority: child.priority,
                    source: child.storedSource, tags: child.tags, size: child.size))
        }
    }

    private mutating func insert(_ row: Row) -> JobID {
        lastJob += 1
        var row = row
        row.job.id = lastJob
        rows.set(lastJob, row)
        if let parent = row.job.parent { children.insert(ChildKey(parent, lastJob)) }
        for tag in row.tags { tags.insert(NamedID(tag, lastJob)) }
        updateIndexes(from: nil, to: row)
        return lastJob
    }

    /// Stores what has become of a job; false where it was removed.
    @discardableResult
    mutating func save(_ job: Job) -> Bool {
        guard let old = rows[job.id] else { return false }
        var new = old
        // What a job began with never changes, and an expanded spec is not kept.
        new.job = job.reading(old.job.spec)
        new.size = job.storedSize
        rows.set(job.id, new)
        updateIndexes(from: old, to: new)
        if marks[job.id] == true { marks.remove(job.id) }
        // A failed job can be retried, and then goes on with what it has.
        if job.state == .succeeded { checkpoints.remove(LinkKey(job: job.id, link: job.link)) }
        return true
    }

    // MARK: Removing

    /// Jobs and all their descendants, each after its parent.
    func tree(of roots: [JobID]) -> [JobID] {
        var found = roots
        var next = 0
        while next < found.count {
            let start = ChildKey(parent: found[next], link: .min, index: .min, id: .min)
            found += children.rows(from: start).lazy.map(\.key).prefix { [parent = found[next]] in $0.parent == parent }
                .map(\.id)
            next += 1
        }
        return found
    }

    mutating func removeChildren(of parent: JobID, fromLink link: Int) -> [RemovedJob] {
        let start = ChildKey(parent: parent, link: link, index: .min, id: .min)
        let roots = Array(children.rows(from: start).lazy.map(\.key).prefix { $0.parent == parent }.map(\.id))
        let removed = remove(tree(of: roots))
        removeTemplates(of: parent, fromLink: link)
        return removed
    }

    mutating func remove(_ jobs: [JobID]) -> [RemovedJob] {
        jobs.compactMap { id in
            guard let row = rows.remove(id) else { return nil }
            let job = row.job
            let removed = RemovedJob(
                id: id, owner: job.owner, queue: row.queue, state: job.state, links: job.link, size: row.size,
                checkpoints: removeCheckpoints(of: id), parent: job.parent?.job, tags: row.tags)
            if let parent = job.parent { children.remove(ChildKey(parent, id)) }
            if job.parent == nil, case .whole = row.body, let key = job.spec.key {
                keys.remove(NamedID(key, Int64(job.owner)))
            }
            for tag in row.tags { tags.remove(NamedID(tag, id)) }
            removeTemplates(of: id, fromLink: .min)
            updateIndexes(from: row, to: nil)
            return removed
        }
    }

    mutating func purge(finishedBefore time: Timestamp, keeping total: Int, atMost limit: Int) -> [RemovedJob] {
        let owners = finishedRoots.rows()
        let most = RetentionShares.most(of: owners.map(\.value.count), keeping: total)
        let roots = owners.flatMap { _, jobs in
            let excess = most.map { jobs.count - $0 } ?? 0
            return jobs.rows().lazy.map(\.key).enumerated().prefix { $0.offset < excess || $0.element.time < time }
                .map(\.element)
        }
        return purge(roots.prefix(max(0, limit)))
    }

    mutating func purgeOldest(_ count: Int, freeing bytes: Int64, of owner: UInt32) -> [RemovedJob] {
        var removed: [RemovedJob] = []
        var freed: Int64 = 0
        for root in finishedRoots[owner]?.rows().map(\.key).prefix(max(0, count)) ?? [] where freed < bytes {
            let tree = remove(tree(of: [root.id]))
            freed = tree.reduce(freed) { $0.saturatingAdding($1.size) }
            removed += tree
        }
        return removed
    }

    private mutating func purge(_ roots: some Sequence<TimedJob>) -> [RemovedJob] {
        roots.flatMap { root in remove(tree(of: [root.id])) }
    }

    @discardableResult
    private mutating func removeCheckpoints(of job: JobID) -> [JSON] {
        let found = checkpoints.rows(from: LinkKey(job: job, link: .min)).prefix { $0.key.job == job }
        for checkpoint in found { checkpoints.remove(checkpoint.key) }
        return found.map(\.value)
    }

    private mutating func removeTemplates(of job: JobID, fromLink link: Int) {
        let found = templates.rows(from: LinkKey(job: job, link: link)).prefix { $0.key.job == job }
        for template in found { templates.remove(template.key) }
    }

    // MARK: Indexes

    /// Each index is touched only where its key changes.
    private mutating func updateIndexes(from old: Row?, to new: Row?) {
        updateKind(from: old, to: new)
        updateReady(from: old, to: new)
        Self.replace(old?.gatedKey, by: new?.gatedKey, in: &gated)
        Self.replace(old?.dueKey, by: new?.dueKey, in: &due)
        Self.replace(old?.deadlineKey, by: new?.deadlineKey, in: &deadlines)
        updateFinished(from: old, to: new)
    }

    private static func replace<Key>(_ old: Key?, by new: Key?, in keys: inout SortedKeys<Key>) {
        guard old != new else { return }
        if let old { keys.remove(old) }
        if let new { keys.insert(new) }
    }

    private mutating func updateKind(from old: Row?, to new: Row?) {
        let isSame = old != nil && old?.kind == new?.kind
        if let old {
            let isEmpty = kinds.change(old.kind, or: Members()) { members in
                members.bytes -= old.size
                if !isSame { members.ids.remove(old.job.id) }
                return members.ids.isEmpty
            }
            if isEmpty { kinds.remove(old.kind) }
        }
        if let new {
            kinds.change(new.kind, or: Members()) { members in
                members.bytes += new.size
                if !isSame { members.ids.insert(new.job.id) }
            }
        }
    }

    private mutating func updateFinished(from old: Row?, to new: Row?) {
        let (was, becomes) = (old?.finishedKey, new?.finishedKey)
        guard was != becomes, let owner = (old ?? new)?.job.owner else { return }
        let isEmpty = finishedRoots.change(owner, or: SortedKeys()) { jobs in
            if let was { jobs.remove(was) }
            if let becomes { jobs.insert(becomes) }
            return jobs.isEmpty
        }
        if isEmpty { finishedRoots.remove(owner) }
    }

    private mutating func updateReady(from old: Row?, to new: Row?) {
        let (was, becomes) = (old?.readyKey, new?.readyKey)
        guard was != becomes else { return }
        if let was {
            let isEmpty = ready.change(was.group, or: Ready()) { ready in
                ready.remove(was)
                return ready.all.isEmpty
            }
            if isEmpty { ready.remove(was.group) }
        }
        if let becomes { ready.change(becomes.group, or: Ready()) { $0.insert(becomes) } }
    }
}

/// The keys of a ready job in the indexes.
struct ReadyKey: Equatable {
    let group: ReadyGroup
    let position: ReadyPosition
    let host: Name?
}

extension MemoryTables.Ready {
    mutating func insert(_ key: ReadyKey) {
        all.set(key.position, key.host)
        guard let host = key.host else { return withoutHost.insert(key.position) }
        byHost.change(host, or: SortedKeys()) { $0.insert(key.position) }
    }

    mutating func remove(_ key: ReadyKey) {
        all.remove(key.position)
        guard let host = key.host else {
            withoutHost.remove(key.position)
            return
        }
        let isEmpty = byHost.change(host, or: SortedKeys()) { positions in
            positions.remove(key.position)
            return positions.isEmpty
        }
        if isEmpty { byHost.remove(host) }
    }
}

extension MemoryTables.Row {
    var kind: RowKind {
        RowKind(
            owner: job.owner, queue: Name(queue), state: job.state, isChild: job.parent != nil, source: Name(source))
    }

    var position: ReadyPosition { ReadyPosition(priority: priority, id: job.id) }

    var readyKey: ReadyKey? {
        guard job.state == .queued, !job.isGated else { return nil }
        return ReadyKey(
            group: ReadyGroup(queue: Name(queue), owner: job.owner), position: position, host: job.host.map(Name.init))
    }

    var gatedKey: ChildKey? {
        guard job.state == .queued, job.isGated, let parent = job.parent else { return nil }
        return ChildKey(parent, job.id)
    }

    var dueKey: TimedJob? {
        guard job.state == .scheduled, let time = job.notBefore else { return nil }
        return TimedJob(time: time, id: job.id)
    }

    var deadlineKey: TimedJob? {
        guard !job.state.isTerminal, let time = job.deadlineAt else { return nil }
        return TimedJob(time: time, id: job.id)
    }

    var finishedKey: TimedJob? {
        guard job.state.isTerminal, job.parent == nil, let time = job.finishedAt else { return nil }
        return TimedJob(time: time, id: job.id)
    }
}

extension NewChild {
    /// The new job; where its spec is made of a template, its parent's spec stands in for it.
    fileprivate func stored(of parent: Job) -> (Job, MemoryTables.Row.Body) {
        if case .item(let item) = body { return (job(of: parent, parent.spec), .item(item)) }
        guard let spec = try? spec(template: nil) else { return (job(of: parent, parent.spec), .unreadable) }
        return (job(of: parent, spec), .whole)
    }
}
