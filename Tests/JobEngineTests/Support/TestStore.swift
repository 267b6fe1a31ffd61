import Glibc
import JobModel
import Synchronization
import TestSupport

/// A store in memory: a round works on a copy, which takes the place of what there was when it is committed.
final class MemoryStore: JobStore, Sendable {
    /// What goes wrong.
    struct Faults {
        /// Ends of the next rounds, in order; nil commits.
        var ends: [RoundEnd?] = []
        /// No round that writes is committed.
        var isBroken = false
        /// There is no room for new rows.
        var isFull = false
        /// Jobs whose rows cannot be read in a round.
        var unreadable: Set<JobID> = []
        /// How many ends of work cannot be stored.
        var failingWorkEnds = 0
        /// To read a job takes so long that a round closes after one input.
        var isSlow = false
        /// Lets some rounds fail, but never two in a row.
        var random: SeededGenerator?
        fileprivate var hasFailed = false

        /// How the next round ends; nil commits it.
        fileprivate mutating func next(hasWritten: Bool) -> RoundEnd? {
            if !ends.isEmpty { return ends.removeFirst() }
            if isBroken, hasWritten { return .undone(MemoryStore.error) }
            guard var generator = random else { return nil }
            hasFailed = !hasFailed && Int.random(in: 0..<6, using: &generator) == 0
            random = generator
            return hasFailed ? .unknown(MemoryStore.error) : nil
        }
    }

    static let error = StoreError(.write, "The test lets it fail.")

    let tables = Mutex(Tables())
    let faults = Mutex(Faults())
    /// Makes a copy of the state and gives its path.
    let copy = Mutex<(@Sendable () -> String)?>(nil)
    /// How many rounds wrote something and were committed, and how many were begun.
    let rounds = Mutex((committed: 0, begun: 0))
    /// Called in the first call of each round.
    let inRound = Mutex<(@Sendable () -> Void)?>(nil)

    func round(_ body: (any JobTransaction) throws(StoreError) -> Void) -> RoundEnd {
        inRound.withLock(\.self)?()
        let transaction = MemoryTransaction(tables.withLock(\.self), self)
        rounds.withLock { $0.begun += 1 }
        do throws(StoreError) { try body(transaction) } catch { return .undone(error) }
        if let end = faults.withLock({ $0.next(hasWritten: transaction.hasWritten) }) { return end }
        awaited.withLock { awaited in
            tables.withLock { $0 = transaction.tables }
            let over = awaited.indices.filter { awaited[$0].isTrue(transaction.tables) }
            for index in over { awaited[index].tell() }
            for index in over.reversed() { awaited.remove(at: index) }
        }
        if transaction.hasWritten { rounds.withLock { $0.committed += 1 } }
        return .committed
    }

    private struct Awaited {
        let isTrue: @Sendable (Tables) -> Bool
        let tell: @Sendable () -> Void
    }

    private let awaited = Mutex<[Awaited]>([])

    /// Returns once what is stored is so.
    func until(_ isTrue: @escaping @Sendable (Tables) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isTrueNow = awaited.withLock { awaited in
                if tables.withLock({ isTrue($0) }) { return true }
                awaited.append(Awaited(isTrue: isTrue) { continuation.resume() })
                return false
            }
            if isTrueNow { continuation.resume() }
        }
    }

    func row(_ job: JobID) -> JobRow? { tables.withLock { $0.jobs[job] } }
}

struct Tables {
    struct Key: Hashable {
        let owner: UInt32
        let key: String
    }

    struct Template {
        let link: Int
        let value: StoredValue
    }

    var jobs: [JobID: JobRow] = [:]
    var documents: [JobID: NewJobRow.Document] = [:]
    var digests: [JobID: UInt64] = [:]
    var keys: [Key: JobID] = [:]
    var checkpoints: [JobID: [Int: [UInt8]]] = [:]
    var downloads: [String: [UInt8]] = [:]
    var lists: [JobID: ListRow] = [:]
    var templates: [JobID: [Int64: Template]] = [:]
    var schedules: [ScheduleKey: ScheduleRow] = [:]
    var specs: [ScheduleKey: [UInt8]] = [:]
    var queues: [String: QueueSettings] = [:]
    var counts: [CountKey: CountValue] = [:]
    var work: [WorkID: WorkRow] = [:]
    var lastJob: JobID = 0
    var lastWork: WorkID = 0
    var lastNumber: Int64 = 0

    typealias WorkID = Int64

    func rows(_ isIncluded: (JobRow) -> Bool) -> [JobRow] {
        jobs.values.filter(isIncluded).sorted { $0.id < $1.id }
    }
}

final class MemoryTransaction: JobTransaction {
    private(set) var hasWritten = false
    private(set) var tables: Tables
    private let store: MemoryStore

    init(_ tables: Tables, _ store: MemoryStore) {
        self.tables = tables
        self.store = store
    }

    private func write(_ change: (inout Tables) -> Void) {
        hasWritten = true
        change(&tables)
    }

    func load(_ keys: [RowKey]) {}

    func job(_ id: JobID) throws(StoreError) -> JobRow? {
        let (isUnreadable, isSlow) = store.faults.withLock { ($0.unreadable.contains(id), $0.isSlow) }
        if isUnreadable { throw MemoryStore.error }
        if isSlow { usleep(6000) }
        return tables.jobs[id]
    }

    func document(of job: JobID) -> NewJobRow.Document? { tables.documents[job] }

    func insert(_ jobs: [NewJobRow]) throws(StoreError) -> [Inserted] {
        try checkRoom()
        return jobs.map { new in
            let key = new.row.key.map { Tables.Key(owner: new.row.owner, key: $0) }
            if let key, let taken = tables.keys[key] {
                return .taken(taken, isSame: tables.digests[taken] == new.digest)
            }
            var row = new.row
            write { tables in
                tables.lastJob += 1
                row.id = tables.lastJob
                tables.jobs[row.id] = row
                tables.documents[row.id] = new.document
                tables.digests[row.id] = new.digest
                if let key { tables.keys[key] = row.id }
            }
            return .created(row.id)
        }
    }

    func update(_ job: JobRow) { write { $0.jobs[job.id] = job } }

    func delete(_ job: JobID) {
        releaseKey(of: job)
        write { tables in
            tables.jobs[job] = nil
            tables.documents[job] = nil
            tables.checkpoints[job] = nil
        }
    }

    func releaseKey(of job: JobID) {
        guard let row = tables.jobs[job], let key = row.key else { return }
        write { tables in
            let key = Tables.Key(owner: row.owner, key: key)
            if tables.keys[key] == job { tables.keys[key] = nil }
        }
    }

    func ready(
        queue: String, owner: UInt32, after: ReadyPosition?, excluding hosts: Set<String>, limit: Int
    ) -> [ReadyRow] {
        let rows = tables.jobs.values.filter { row in
            row.isReady && row.queue == queue && row.owner == owner && after.map { $0 < row.position } ?? true
                && row.host.map { !hosts.contains($0) } ?? true
        }
        return rows.sorted { $0.position < $1.position }.prefix(limit).map {
            ReadyRow(position: $0.position, host: $0.host)
        }
    }

    func due(steady: SteadyTime, wall: Timestamp, limit: Int) -> [JobRow] {
        let rows = tables.rows { row in
            !row.state.isTerminal && !row.isRemoving
                && (row.due.map { $0 <= steady } ?? false || row.deadline.map { $0 <= steady } ?? false
                    || row.state == .scheduled && row.due == nil && row.notBefore.map { $0 <= wall } ?? false)
        }
        return Array(rows.prefix(limit))
    }

    func dueTimes() -> DueTimes {
        let rows = tables.jobs.values.filter { !$0.state.isTerminal && !$0.isRemoving }
        let wall = rows.filter { $0.state == .scheduled && $0.due == nil }.compactMap(\.notBefore)
        return DueTimes(
            steady: rows.flatMap { [$0.due, $0.deadline].compactMap(\.self) }.min(),
            wall: (wall + tables.schedules.values.compactMap(\.next)).min(),
            firstEnd: tables.jobs.values.filter { $0.parent == nil && !$0.isRemoving }.compactMap(\.finishedAt).min())
    }

    func running(exceptLife life: Int64, limit: Int) -> [JobRow] {
        Array(tables.rows { $0.run.map { $0.life != life } ?? false }.prefix(limit))
    }

    func suspects(after: JobID, limit: Int) -> [JobRow] {
        Array(tables.rows { $0.crashes > 0 && $0.id > after && !$0.state.isTerminal }.prefix(limit))
    }

    func children(of job: JobID, list: Int64, _ which: ChildSelection, after: JobID, limit: Int) -> [JobRow] {
        let rows = tables.rows { row in
            guard row.parent?.job == job, row.parent?.list == list, row.id > after else { return false }
            return switch which {
            case .all: true
            case .unfinished: !row.state.isTerminal
            case .gated: row.waiting == .gate
            }
        }
        return Array(rows.prefix(limit))
    }

    func children(of job: JobID, fromLink link: Int, limit: Int) -> [JobRow] {
        Array(tables.rows { $0.parent.map { $0.job == job && $0.link >= link } ?? false }.prefix(limit))
    }

    func finished(owner: UInt32?, before: Timestamp, limit: Int) -> [JobRow] {
        let rows = tables.jobs.values.filter { row in
            row.state.isTerminal && row.parent == nil && !row.isRemoving && owner.map { $0 == row.owner } ?? true
                && row.finishedAt.map { $0 < before } ?? false
        }
        return Array(
            rows.sorted { ($0.finishedAt?.milliseconds ?? 0) < ($1.finishedAt?.milliseconds ?? 0) }.prefix(limit))
    }

    func save(checkpoint: [UInt8]?, of job: JobID, link: Int) {
        write { $0.checkpoints[job, default: [:]][link] = checkpoint }
    }

    func checkpoints(of job: JobID, fromLink link: Int) -> [(link: Int, text: [UInt8])] {
        (tables.checkpoints[job] ?? [:]).filter { $0.key >= link }.sorted { $0.key < $1.key }.map {
            (link: $0.key, text: $0.value)
        }
    }

    func save(download: [UInt8], to path: String) { write { $0.downloads[path] = download } }

    func list(of job: JobID) -> ListRow? { tables.lists[job] }

    func put(_ list: ListRow) {
        write { tables in
            tables.lists[list.job] = list
            if let template = list.template {
                tables.templates[list.job, default: [:]][list.id] = Tables.Template(link: list.link, value: template)
            }
        }
    }

    func closeList(of job: JobID) { write { $0.lists[job] = nil } }

    func dropTemplates(of job: JobID, fromLink link: Int) {
        write { $0.templates[job] = $0.templates[job]?.filter { $0.value.link < link } }
    }

    func schedule(_ key: ScheduleKey) -> ScheduleRow? { tables.schedules[key] }

    func put(_ schedule: ScheduleRow, spec: [UInt8]?) {
        write { tables in
            tables.schedules[schedule.schedule.key] = schedule
            if let spec { tables.specs[schedule.schedule.key] = spec }
        }
    }

    func removeSchedule(_ key: ScheduleKey) {
        write { tables in
            tables.schedules[key] = nil
            tables.specs[key] = nil
        }
    }

    func dueSchedules(at time: Timestamp, limit: Int) -> [ScheduleRow] {
        let due = tables.schedules.values.filter { $0.next.map { $0 <= time } ?? false }
        return Array(due.sorted { $0.schedule.key < $1.schedule.key }.prefix(limit))
    }

    func schedules(after: ScheduleKey?, limit: Int) -> [ScheduleRow] {
        let rows = tables.schedules.values.filter { row in after.map { $0 < row.schedule.key } ?? true }
        return Array(rows.sorted { $0.schedule.key < $1.schedule.key }.prefix(limit))
    }

    func schedule(ofLastJob job: JobID) -> ScheduleRow? {
        tables.schedules.values.first { $0.schedule.lastJob == job }
    }

    func scheduleCounts() -> [UInt32: CountValue] {
        tables.schedules.values.reduce(into: [:]) { counts, row in
            counts[row.schedule.key.owner, default: CountValue()].jobs += 1
            counts[row.schedule.key.owner]?.bytes += row.schedule.storedSize
        }
    }

    func queues() -> [QueueSettings] { Array(tables.queues.values) }
    func put(_ queue: QueueSettings) { write { $0.queues[queue.name] = queue } }
    func counts() -> [CountKey: CountValue] { tables.counts }

    func put(_ counts: [CountKey: CountValue]) {
        write { tables in
            for (key, value) in counts { tables.counts[key] = value.jobs > 0 ? value : nil }
        }
    }

    func work(after: Int64, limit: Int) -> [WorkRow] {
        Array(tables.work.values.filter { $0.id > after }.sorted { $0.id < $1.id }.prefix(limit))
    }

    func nextWork(ofOwnerAbove owner: UInt32?) -> WorkRow? {
        tables.work.values.filter { work in work.kind != .removeParts && owner.map { work.owner > $0 } ?? true }
            .min { ($0.owner, $0.id) < ($1.owner, $1.id) }
    }

    func hasWork(_ kind: WorkRow.Kind, of job: JobID) -> Bool {
        tables.work.values.contains { $0.kind == kind && $0.job == job }
    }

    func add(_ work: WorkRow) -> Int64 {
        write { tables in
            tables.lastWork += 1
            var work = work
            work.id = tables.lastWork
            tables.work[work.id] = work
        }
        return tables.lastWork
    }

    func update(_ work: WorkRow) { write { $0.work[work.id] = work } }

    func endWork(_ id: Int64) throws(StoreError) {
        let fails = store.faults.withLock { faults in
            guard faults.failingWorkEnds > 0 else { return false }
            faults.failingWorkEnds -= 1
            return true
        }
        if fails { throw MemoryStore.error }
        write { $0.work[id] = nil }
    }

    private func checkRoom() throws(StoreError) {
        if store.faults.withLock(\.isFull) { throw MemoryStore.error }
    }

    func nextNumber() throws(StoreError) -> Int64 {
        try checkRoom()
        write { $0.lastNumber += 1 }
        return tables.lastNumber
    }
}

extension MemoryStore: JobReader {
    private func stored(_ row: JobRow, _ tables: Tables) -> StoredJob? {
        guard !row.isRemoving, let document = tables.documents[row.id] else { return nil }
        let template = row.parent.flatMap { tables.templates[$0.job]?[$0.list]?.value }
        return StoredJob(row: row, document: document, template: template)
    }

    func job(_ id: JobID) -> StoredJob? { tables.withLock { tables in tables.jobs[id].flatMap { stored($0, tables) } } }
    func jobs(_ ids: [JobID]) -> [StoredJob] { ids.compactMap { job($0) } }

    func standings(of ids: [JobID]) -> [JobID: JobStanding] {
        jobs(ids).reduce(into: [:]) { found, job in
            found[job.row.id] = JobStanding(owner: job.row.owner, state: job.row.state, version: job.row.version)
        }
    }

    func page(_ filter: JobFilter) -> (jobs: [StoredJob], endsEarly: Bool) { ([], false) }

    func outcomes(of job: JobID, list: Int64, from index: Int, limit: Int) -> [ChildOutcome] {
        tables.withLock { tables in
            let rows = tables.jobs.values.filter { row in
                row.parent.map { $0.job == job && $0.list == list && $0.index >= index } ?? false
            }
            return rows.sorted { ($0.parent?.index ?? 0) < ($1.parent?.index ?? 0) }.prefix(limit).map {
                ChildOutcome(job: $0.id, index: $0.parent?.index ?? 0, state: $0.state, carried: $0.carried)
            }
        }
    }

    func schedule(_ key: ScheduleKey) -> StoredScheduleRow? {
        tables.withLock { tables in
            tables.schedules[key].map { StoredScheduleRow(row: $0, spec: tables.specs[key], lastState: nil) }
        }
    }

    func schedules(after: ScheduleKey?, owner: UInt32?, limit: Int) -> [StoredScheduleRow] { [] }
    func checkpoint(of job: JobID, link: Int) -> [UInt8]? { tables.withLock { $0.checkpoints[job]?[link] } }
    func unfinishedTransfers(of job: JobID?, limit: Int) -> [UnfinishedTransfer] { [] }
    func download(to path: String) -> [UInt8]? { tables.withLock { $0.downloads[path] } }

    func copyState() throws(StoreError) -> String {
        guard let copy = copy.withLock(\.self) else { throw StoreError(.write, "There is no room.") }
        return copy()
    }

    func blobs(beforeLife life: Int64, after: BlobReference?, limit: Int) -> [BlobReference] {
        tables.withLock { tables in
            let blobs = tables.jobs.values.flatMap { row in
                row.blobs.map(\.blob) + [row.carried?.blob].compactMap(\.self)
            }
            let found = Set(blobs).filter { blob in
                blob.life < life && after.map { ($0.life, $0.number) < (blob.life, blob.number) } ?? true
            }
            return Array(found.sorted { ($0.life, $0.number) < ($1.life, $1.number) }.prefix(limit))
        }
    }
}
