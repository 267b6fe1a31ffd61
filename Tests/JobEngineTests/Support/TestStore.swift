import Glibc
import InMemoryStore
import JobModel
import Synchronization
import TestSupport

/// The store of the simulator for an engine with threads: readers see the last committed round.
final class TestStore: JobStore, Sendable {
    /// What goes wrong.
    struct Faults {
        /// Ends of the next rounds, in order; nil commits.
        var ends: [RoundEnd?] = []
        /// No round that writes is committed.
        var isBroken = false
        /// Jobs whose rows cannot be read in a round.
        var unreadable: Set<JobID> = []
        /// The number of reads of schedules that fail.
        var failingScheduleReads = 0
        /// The number of ends of work that cannot be stored.
        var failingWorkEnds = 0
        /// Each call takes so long that a round closes after one input.
        var isSlow = false
        /// Lets some rounds fail, but never two in a row.
        var random: SeededGenerator?
        private var hasFailed = false

        /// The end of the present round of a store; nil commits it.
        fileprivate mutating func end(_ store: InMemoryStore) -> RoundEnd? {
            if !ends.isEmpty { return ends.removeFirst() }
            if failingWorkEnds > 0, store.workChanges.contains(where: { $0.after == nil }) {
                failingWorkEnds -= 1
                return .undone(TestStore.error)
            }
            guard var generator = random else { return nil }
            hasFailed = !hasFailed && Int.random(in: 0..<6, using: &generator) == 0
            random = generator
            return hasFailed ? .unknown(TestStore.error) : nil
        }
    }

    private struct Awaited {
        let isTrue: @Sendable (StoredRows) -> Bool
        let tell: @Sendable () -> Void
    }

    static let error = StoreError(.write, "The test lets it fail.")

    // Only one thread at a time runs a round.
    private nonisolated(unsafe) let store: InMemoryStore
    private let committed: Mutex<StoredRows>
    private let awaited = Mutex<[Awaited]>([])
    let faults = Mutex(Faults())
    /// Makes a copy of the state and gives its path.
    let copy = Mutex<(@Sendable () -> String)?>(nil)
    /// The number of rounds that were begun.
    let begun = Mutex(0)
    /// Called at the start of each round.
    let inRound = Mutex<(@Sendable () -> Void)?>(nil)

    init() {
        store = InMemoryStore()
        committed = Mutex(store.rows)
    }

    /// Begins the life of another engine, and ends the one before.
    func begin(life: Int64, wasStopped: Bool) {
        guard life != store.life else { return }
        store.end(life: store.life, wasStopped: wasStopped)
        store.begin(life: life)
        store.life = life
    }

    /// The rows of the last committed round.
    var rows: StoredRows { committed.withLock(\.self) }

    var life: Int64 { store.life }

    func round(_ body: (any JobTransaction) throws(StoreError) -> Void) -> RoundEnd {
        inRound.withLock(\.self)?()
        begun.withLock { $0 += 1 }
        let (isBroken, isSlow, unreadable) = faults.withLock { ($0.isBroken, $0.isSlow, $0.unreadable) }
        if isBroken { store.failNextCommit() }
        store.onCall(isSlow ? { usleep(6000) } : nil)
        for job in unreadable { store.setUnreadable(job, true) }
        var fault: RoundEnd?
        let end = store.round { transaction throws(StoreError) in
            try body(transaction)
            fault = faults.withLock { $0.end(store) }
            if fault != nil { throw Self.error }
        }
        store.heal()
        guard case .committed = end else { return fault ?? end }
        let rows = store.rows
        awaited.withLock { awaited in
            committed.withLock { $0 = rows }
            for wait in awaited where wait.isTrue(rows) { wait.tell() }
            awaited.removeAll { $0.isTrue(rows) }
        }
        return .committed
    }

    /// Returns once what is stored is so.
    func until(_ isTrue: @escaping @Sendable (StoredRows) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isTrueNow = awaited.withLock { awaited in
                if isTrue(rows) { return true }
                awaited.append(Awaited(isTrue: isTrue) { continuation.resume() })
                return false
            }
            if isTrueNow { continuation.resume() }
        }
    }
}

extension TestStore: JobReader {
    func job(_ id: JobID) -> StoredJob? {
        let rows = rows
        guard let row = rows.job(id), !row.isRemoving, let document = rows.document(of: id) else { return nil }
        return StoredJob(row: row, document: document, template: row.parent.flatMap { rows.template(of: $0) })
    }

    func jobs(_ ids: [JobID]) -> [StoredJob] { ids.compactMap { job($0) } }

    func standings(of ids: [JobID]) -> [JobID: JobStanding] {
        jobs(ids).reduce(into: [:]) { found, job in
            found[job.row.id] = JobStanding(owner: job.row.owner, state: job.row.state, version: job.row.version)
        }
    }

    func ids(_ filter: JobFilter) -> [JobID] { [] }

    func page(_ filter: JobFilter) -> (jobs: [StoredJob], endsEarly: Bool) { ([], false) }

    func outcomes(of job: JobID, list: Int64, from index: Int, limit: Int) -> [ChildOutcome] {
        // The ids of children are in the order of their indexes.
        let children = rows.allJobs.lazy.filter { row in
            row.parent.map { $0.job == job && $0.list == list && $0.index >= index } ?? false
        }
        return children.prefix(limit).map {
            (job: $0.id, index: $0.parent?.index ?? 0, state: $0.state, carried: $0.carried)
        }
    }

    func schedule(_ key: ScheduleKey) throws(StoreError) -> StoredSchedule? {
        let fails = faults.withLock { faults in
            faults.failingScheduleReads -= 1
            return faults.failingScheduleReads >= 0
        }
        if fails { throw Self.error }
        let rows = rows
        return rows.allSchedules.first { $0.key == key }.map {
            StoredSchedule($0, spec: rows.spec(of: key), lastState: nil)
        }
    }

    func schedules(after: ScheduleKey?, owner: UInt32?, limit: Int) -> [StoredSchedule] { [] }
    func checkpoint(of job: JobID, link: Int) -> [UInt8]? { rows.checkpoint(of: job, link: link) }
    func unfinishedTransfers(limit: Int) -> [UnfinishedTransfer] { [] }
    func download(to path: String) -> [UInt8]? { rows.download(to: path) }

    /// All at once.
    func blobs(beforeLife life: Int64, after: BlobReference?, limit: Int) -> [BlobReference] {
        rows.allJobs.flatMap { $0.blobs.map(\.blob) + [$0.carried?.blob].compactMap(\.self) }.filter { $0.life < life }
    }

    func copyState() throws(StoreError) -> String {
        guard let copy = copy.withLock(\.self) else { throw StoreError(.write, "There is no room.") }
        return copy()
    }
}
