import DequeModule
import JobModel

/// The jobs in memory, and which rows of the store are out of date.
///
/// A row is as old as the question it answers. So a job that leaves the memory while questions are open is remembered as it
/// left, until each of these is answered: whoever gets a row asks ``present(_:)`` before believing it.
struct JobTable {
    /// What is known of a job without asking the store.
    enum Known {
        case active(ActiveJob)
        /// It left the memory in this form, which is stored.
        case left(Job)
        case removed
    }

    private struct Departure {
        /// Nil for a job that was removed.
        let job: Job?
        /// The last question that was open when it left.
        let read: ReadID
    }

    private var active: [JobID: ActiveJob] = [:]
    private var departures: [JobID: Departure] = [:]
    /// In the order in which they left.
    private var departed: Deque<(id: JobID, read: ReadID)> = []
    /// Questions without an answer.
    private var open: Set<ReadID> = []
    private var oldestOpen: ReadID = 1
    private var lastRead: ReadID = 0

    subscript(id: JobID) -> ActiveJob? { active[id] }
    var count: Int { active.count }
    var departureCount: Int { departures.count }
    var openReads: Int { open.count }

    /// The jobs in memory, by id.
    var all: [ActiveJob] { active.values.sorted { $0.job.id < $1.job.id } }

    /// The jobs in memory that `isMeant` says, in no order.
    func jobs(where isMeant: (Job) -> Bool) -> [Job] {
        active.values.lazy.map(\.job).filter(isMeant)
    }

    func known(_ id: JobID) -> Known? {
        if let entry = active[id] { return .active(entry) }
        guard let departure = departures[id] else { return nil }
        return departure.job.map(Known.left) ?? .removed
    }

    /// The jobs that left or were removed while a question was open that is not answered yet.
    var departedIDs: some Sequence<JobID> { departures.keys }

    /// A job as it is now, given its row; nil where it was removed since.
    func present(_ row: Job) -> Job? {
        switch known(row.id) {
        case .active(let entry): entry.job
        case .left(let job): job
        case .removed: nil
        case nil: row
        }
    }

    mutating func insert(_ entry: ActiveJob) {
        active[entry.job.id] = entry
        departures[entry.job.id] = nil
        if let parent = entry.job.parent { active[parent.job]?.children.insert(entry.job.id) }
    }

    /// A job leaves the memory: it is stored as it is now, or was removed.
    mutating func remove(_ id: JobID, isRemoved: Bool = false) {
        let entry = active.removeValue(forKey: id)
        if let parent = entry?.job.parent { active[parent.job]?.children.remove(id) }
        guard !open.isEmpty, entry != nil || isRemoved else { return }
        departures[id] = Departure(job: isRemoved ? nil : entry?.job, read: lastRead)
        departed.append((id, lastRead))
    }

    /// A question is asked.
    mutating func beginRead() -> ReadID {
        lastRead += 1
        open.insert(lastRead)
        return lastRead
    }

    /// The answer to a question was handled.
    mutating func endRead(_ read: ReadID) {
        open.remove(read)
        while oldestOpen <= lastRead, !open.contains(oldestOpen) { oldestOpen += 1 }
        while let (id, read) = departed.first, read < oldestOpen {
            departed.removeFirst()
            if departures[id]?.read == read { departures[id] = nil }
        }
    }

    /// The jobs above `job`, from the nearest, and the first of them that is neither in memory nor in the `lineage` of the
    /// one below it, by default that of its own entry.
    func ancestors(of job: Job, lineage: [Ancestor]? = nil) -> (known: [Ancestor], missing: JobID?) {
        var known: [Ancestor] = []
        var next = job.parent?.job
        var lineage = lineage ?? active[job.id]?.lineage
        while let id = next {
            guard let entry = active[id] else {
                return lineage.map { (known + $0, nil) } ?? (known, id)
            }
            known.append(Ancestor(entry.job))
            lineage = entry.lineage
            next = entry.job.parent?.job
        }
        return (known, nil)
    }
}

/// A job above another, as far as it matters who watches it.
struct Ancestor: Equatable {
    let id: JobID
    let tags: [String]

    init(id: JobID, tags: [String]) {
        self.id = id
        self.tags = tags
    }

    init(_ job: Job) {
        id = job.id
        tags = job.spec.tags
    }
}
