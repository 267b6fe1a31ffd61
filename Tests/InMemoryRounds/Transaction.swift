import JobModel

/// One round on the tables.
final class Transaction: JobTransaction {
    private let tables: Tables
    private var isOver = false
    private var failure: StoreError?
    /// Calls until one fails.
    var readsLeft: Int?

    init(_ tables: Tables) { self.tables = tables }

    func end() { isOver = true }

    private func check() throws(StoreError) {
        if let failure { throw failure }
        precondition(!isOver, "A transaction was used after its round.")
        guard let left = readsLeft else { return }
        readsLeft = left - 1
        guard left <= 1 else { return }
        let error = StoreError(.read, "The disk cannot be read.")
        failure = error
        throw error
    }

    private func readable(_ id: JobID) -> JobRow? { tables.unreadable.contains(id) ? nil : tables.jobs[id] }

    // MARK: Jobs

    func load(_ keys: [RowKey]) throws(StoreError) { try check() }

    func job(_ id: JobID) throws(StoreError) -> JobRow? {
        try check()
        return readable(id)
    }

    func document(of job: JobID) throws(StoreError) -> NewJobRow.Document? {
        try check()
        return tables.documents[job]
    }

    func insert(_ jobs: [NewJobRow]) throws(StoreError) -> [Inserted] {
        try check()
        return jobs.map { new in
            if let text = new.row.key {
                let key = Tables.Key(owner: new.row.owner, text: text)
                if let earlier = tables.keys[key] {
                    return .taken(earlier, isSame: tables.digests[earlier] == new.digest)
                }
            }
            var row = new.row
            row.id = tables.next("job")
            tables.set(row, row.id)
            tables.set(document: new.document, digest: row.key == nil ? nil : new.digest, of: row.id)
            if let text = row.key { tables.set(key: Tables.Key(owner: row.owner, text: text), row.id) }
            return .created(row.id)
        }
    }

    func update(_ job: JobRow) throws(StoreError) {
        try check()
        precondition(tables.jobs[job.id] != nil, "A job was changed that is not there.")
        tables.set(job, job.id)
    }

    func delete(_ job: JobID) throws(StoreError) {
        try check()
        try releaseKey(of: job)
        for link in tables.checkpointLinks[job] ?? [] { tables.set(checkpoint: nil, of: job, link: Int(link)) }
        tables.set(document: nil, digest: nil, of: job)
        tables.set(nil, job)
    }

    func releaseKey(of job: JobID) throws(StoreError) {
        try check()
        guard let row = tables.jobs[job], let text = row.key else { return }
        let key = Tables.Key(owner: row.owner, text: text)
        if tables.keys[key] == job { tables.set(key: key, nil) }
    }

    func ready(
        queue: String, owner: UInt32, after: ReadyPosition?, excluding hosts: Set<String>, limit: Int
    ) throws(StoreError) -> [ReadyRow] {
        try check()
        let first = after ?? ReadyPosition(priority: .max, id: 0)
        var found: [ReadyRow] = []
        tables.ready.forEach(from: Tables.Ready(queue: queue, owner: owner, position: first)) { key in
            guard key.queue == queue, key.owner == owner, found.count < limit else { return false }
            guard key.position != after, let row = readable(key.position.id) else { return true }
            if row.host.map({ hosts.contains($0) }) ?? false { return true }
            found.append(ReadyRow(position: key.position, host: row.host))
            return found.count < limit
        }
        return found
    }

    func due(steady: SteadyTime, wall: Timestamp, limit: Int) throws(StoreError) -> [JobRow] {
        try check()
        var ids: Set<JobID> = []
        for (index, time) in [
            (tables.due, steady), (tables.deadlines, steady), (tables.wallDue, wall.milliseconds),
        ] {
            for key in index.keys(
                from: Tables.Timed(time: .min, job: 0), limit: limit, { $0.time <= time ? true : nil })
            {
                ids.insert(key.job)
            }
        }
        return ids.sorted().prefix(limit).compactMap(readable)
    }

    func dueTimes() throws(StoreError) -> DueTimes {
        try check()
        var times = DueTimes()
        times.steady = [tables.due.first?.time, tables.deadlines.first?.time].compactMap(\.self).min()
        let schedules = tables.schedules.values.compactMap(\.next).min()
        times.wall = [tables.wallDue.first.map { Timestamp(milliseconds: $0.time) }, schedules].compactMap(\.self).min()
        times.firstEnd = tables.finishedOfAll.first.map { Timestamp(milliseconds: $0.time) }
        return times
    }

    func running(exceptLife life: Int64, limit: Int) throws(StoreError) -> [JobRow] {
        try check()
        let keys = tables.running.keys(from: Tables.Timed(time: .min, job: 0), limit: .max) { $0.time != life }
        return keys.map(\.job).sorted().prefix(limit).compactMap(readable)
    }

    func suspects(after: JobID, limit: Int) throws(StoreError) -> [JobRow] {
        try check()
        return tables.suspects.keys(from: Tables.Timed(time: 0, job: after + 1), limit: limit) { _ in true }
            .map(\.job).compactMap(readable)
    }

    func children(
        of job: JobID, list: Int64, _ which: ChildSelection, after: JobID, limit: Int
    ) throws(StoreError) -> [JobRow] {
        try check()
        if case .gated = which {
            return tables.gated.keys(from: Tables.Gated(list: list, index: 0, job: 0), limit: limit) { key in
                key.list == list ? true : nil
            }.map(\.job).compactMap(readable)
        }
        var found: [JobRow] = []
        // Of all links, as a list's number says which it is.
        tables.children.forEach(from: Tables.Child(parent: job, link: 0, list: 0, job: 0)) { key in
            guard key.parent == job, found.count < limit else { return false }
            guard key.list == list, key.job > after, let row = readable(key.job) else { return true }
            if case .unfinished = which, row.state.isTerminal { return true }
            found.append(row)
            return found.count < limit
        }
        return found
    }

    func children(of job: JobID, fromLink link: Int, limit: Int) throws(StoreError) -> [JobRow] {
        try check()
        return tables.children.keys(from: Tables.Child(parent: job, link: link, list: 0, job: 0), limit: limit) { key in
            key.parent == job ? true : nil
        }.map(\.job).compactMap(readable)
    }

    func finished(owner: UInt32?, before: Timestamp, limit: Int) throws(StoreError) -> [JobRow] {
        try check()
        let time = before.milliseconds
        guard let owner else {
            return tables.finishedOfAll.keys(from: Tables.Timed(time: .min, job: 0), limit: limit) { key in
                key.time < time ? true : nil
            }.map(\.job).compactMap(readable)
        }
        return tables.finished.keys(from: Tables.Finished(owner: owner, time: .min, job: 0), limit: limit) { key in
            key.owner == owner && key.time < time ? true : nil
        }.map(\.job).compactMap(readable)
    }

    // MARK: Checkpoints

    func save(checkpoint: [UInt8]?, of job: JobID, link: Int) throws(StoreError) {
        try check()
        tables.set(checkpoint: checkpoint, of: job, link: link)
    }

    func checkpoints(of job: JobID, fromLink link: Int) throws(StoreError) -> [(link: Int, text: [UInt8])] {
        try check()
        return (tables.checkpointLinks[job] ?? []).filter { $0 >= Int64(link) }.sorted().compactMap { number in
            tables.checkpoints[Tables.LinkKey(job: job, link: number)].map { (Int(number), $0) }
        }
    }

    func save(download: [UInt8], to path: String) throws(StoreError) { try check() }

    // MARK: Lists

    func list(of job: JobID) throws(StoreError) -> ListRow? {
        try check()
        return tables.lists[job]
    }

    func put(_ list: ListRow) throws(StoreError) {
        try check()
        if tables.lists[list.job] == nil, let template = list.template { tables.set(template: template, of: list) }
        tables.set(list: list, of: list.job)
    }

    func closeList(of job: JobID) throws(StoreError) {
        try check()
        tables.set(list: nil, of: job)
    }

    func dropTemplates(of job: JobID, fromLink link: Int) throws(StoreError) {
        try check()
        tables.dropTemplates(of: job, fromLink: link)
    }

    // MARK: Schedules

    func schedule(_ key: ScheduleKey) throws(StoreError) -> ScheduleRow? {
        try check()
        return tables.schedules[key]
    }

    func scheduleSpec(_ key: ScheduleKey) throws(StoreError) -> [UInt8]? {
        try check()
        return tables.specs[key]
    }

    func put(_ schedule: ScheduleRow, spec: [UInt8]?) throws(StoreError) {
        try check()
        tables.set(schedule: schedule, spec: spec, schedule.schedule.key)
    }

    func removeSchedule(_ key: ScheduleKey) throws(StoreError) {
        try check()
        tables.set(schedule: nil, spec: nil, key)
    }

    func dueSchedules(at time: Timestamp, limit: Int) throws(StoreError) -> [ScheduleRow] {
        try check()
        let due = tables.schedules.values.filter { $0.next.map { $0 <= time } ?? false }
        return Array(
            due.sorted {
                ($0.next?.milliseconds ?? 0, $0.schedule.key) < ($1.next?.milliseconds ?? 0, $1.schedule.key)
            }.prefix(limit))
    }

    func schedules(after: ScheduleKey?, limit: Int) throws(StoreError) -> [ScheduleRow] {
        try check()
        let rows = tables.schedules.values.filter { row in after.map { $0 < row.schedule.key } ?? true }
        return Array(rows.sorted { $0.schedule.key < $1.schedule.key }.prefix(limit))
    }

    func schedule(ofLastJob job: JobID) throws(StoreError) -> ScheduleRow? {
        try check()
        return tables.schedules.values.first { $0.schedule.lastJob == job }
    }

    func scheduleCounts() throws(StoreError) -> [UInt32: CountValue] {
        try check()
        var counts: [UInt32: CountValue] = [:]
        for row in tables.schedules.values {
            counts[row.schedule.key.owner, default: CountValue()].jobs += 1
            counts[row.schedule.key.owner, default: CountValue()].bytes += row.schedule.storedSize
        }
        return counts
    }

    // MARK: The rest

    func queues() throws(StoreError) -> [QueueSettings] {
        try check()
        return tables.queues.values.sorted { $0.name < $1.name }
    }

    func put(_ queue: QueueSettings) throws(StoreError) {
        try check()
        tables.set(queue: queue)
    }

    func counts() throws(StoreError) -> [CountKey: CountValue] {
        try check()
        return tables.counts
    }

    func put(_ counts: [CountKey: CountValue]) throws(StoreError) {
        try check()
        for (key, value) in counts { tables.set(count: value, key) }
    }

    func work(after: Int64, limit: Int) throws(StoreError) -> [WorkRow] {
        try check()
        return tables.workIDs.keys(from: Tables.Timed(time: 0, job: after + 1), limit: limit) { _ in true }
            .compactMap { tables.work[$0.job] }
    }

    func nextWork(ofOwnerAbove owner: UInt32?) throws(StoreError) -> WorkRow? {
        try check()
        return tables.work.values.filter { row in
            row.kind != .removeParts && (owner.map { $0 < row.owner } ?? true)
        }.min { ($0.owner, $0.id) < ($1.owner, $1.id) }
    }

    func hasWork(_ kind: WorkRow.Kind, of job: JobID) throws(StoreError) -> Bool {
        try check()
        return tables.work.values.contains { $0.kind == kind && $0.job == job }
    }

    func add(_ work: WorkRow) throws(StoreError) -> Int64 {
        try check()
        var work = work
        work.id = tables.next("work")
        tables.set(work: work, work.id)
        return work.id
    }

    func update(_ work: WorkRow) throws(StoreError) {
        try check()
        tables.set(work: work, work.id)
    }

    func endWork(_ id: Int64) throws(StoreError) {
        try check()
        tables.set(work: nil, id)
    }

    func nextNumber() throws(StoreError) -> Int64 {
        try check()
        return tables.next("list")
    }
}
