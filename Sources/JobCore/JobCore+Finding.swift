import DequeModule
import JobModel

/// Finds many jobs without having all of them in memory whole.
extension JobCore {
    /// A search for jobs that a caller asked for, and what is kept of those found so far. It is an object, as each part would
    /// copy all before it otherwise.
    private final class Search<Kept> {
        /// In the order asked for.
        let ids: [JobID]
        let wanted: Set<JobID>
        let caller: Caller
        let keep: (Job) -> Kept
        /// Where no more than the state of a job is needed: the others are not read.
        let keepState: ((JobState) -> Kept)?
        let body: (Result<[Kept], CoreError>) -> Void
        /// Those that the store is still to be asked for.
        var missing: ArraySlice<JobID> = []
        var found: [JobID: Kept] = [:]

        init(
            _ ids: [JobID], for caller: Caller, keeping keep: @escaping (Job) -> Kept,
            ofState keepState: ((JobState) -> Kept)? = nil,
            _ body: @escaping (Result<[Kept], CoreError>) -> Void
        ) {
            self.ids = ids
            wanted = Set(ids)
            self.caller = caller
            self.keep = keep
            self.keepState = keepState
            self.body = body
        }
    }

    /// Bytes of results that are kept for one answer; no answer shows more.
    private static let mostResults = 2 * JobPage.mostResults
    /// Jobs that the store is asked for at once: others' reads and requests have their turns in between.
    private static let mostAtOnce = 64

    /// These jobs as they are now, each in its brief form.
    func snapshots(_ jobs: [Job]) -> [JobView] {
        var results = Self.mostResults
        return jobs.map { snapshot($0).brief(results: &results) }
    }

    /// Jobs that `caller` may see, as they are now and in brief form, in the order asked for; an error names the first
    /// one that there is not.
    func findAll(_ ids: [JobID], for caller: Caller, _ body: @escaping (Result<[JobView], CoreError>) -> Void) {
        var results = Self.mostResults
        // As many bytes of specs are kept as the longest answer shows.
        var specs = settings.limits.outbound
        search(
            Search(
                ids, for: caller,
                keeping: { [unowned self] job in
                    let view = snapshot(job).brief(results: &results)
                    let size = view.job.spec.size
                    guard size <= specs else { return view.withoutSpec }
                    specs -= size
                    return view
                }, body))
    }

    /// Which of these jobs are finished, where `caller` may see all; an error names the first one that there is not. A job
    /// whose end is still being stored does not count as finished.
    func findFinished(_ ids: [JobID], for caller: Caller, _ body: @escaping (Result<[JobID], CoreError>) -> Void) {
        search(
            Search(ids, for: caller, keeping: \.state.isTerminal, ofState: \.isTerminal) { [unowned self] found in
                body(found.map { found in zip(ids, found).filter { $1 && table[$0] == nil }.map(\.0) })
            })
    }

    private func search<Kept>(_ search: Search<Kept>) {
        search.missing = search.ids.filter { !isKnown($0, to: search.caller) }[...]
        // The table remembers jobs that left before the first read only for the sake of other reads, and may forget
        // them when those are answered. So they are added now.
        addDeparted(to: search)
        goOn(search)
    }

    /// Whether a job need not be looked for. One that `caller` may not see is looked for like one that does not exist.
    private func isKnown(_ id: JobID, to caller: Caller) -> Bool {
        switch table.known(id) {
        case .active(let entry): caller.sees(entry.job)
        case .left(let job): caller.sees(job)
        case .removed, nil: false
        }
    }

    private func goOn<Kept>(_ search: Search<Kept>) {
        let asked = search.missing.prefix(Self.mostAtOnce)
        guard !asked.isEmpty else { return finish(search) }
        if let keep = search.keepState { return readStates(of: asked, for: search, keep) }
        read(.firstJobs(Array(asked), owner: search.caller.owner)) { [unowned self] result in
            guard case .success(.jobs(let rows)) = result else {
                return search.body(.failure(Self.error(of: result)))
            }
            for row in rows { add(row, to: search) }
            // Some may have left the memory meanwhile, and may be forgotten before the next answer.
            addDeparted(to: search)
            let isPartial = StoredJobPage.isFull(rows)
            let last = isPartial ? rows.last.flatMap { row in asked.firstIndex(of: row.id) } : nil
            let end = (last ?? asked.endIndex - 1) + 1
            goOn(search, from: end)
        }
    }

    private func readStates<Kept>(
        of asked: ArraySlice<JobID>, for search: Search<Kept>, _ keep: @escaping (JobState) -> Kept
    ) {
        read(.states(Array(asked), owner: search.caller.owner)) { [unowned self] result in
            guard case .success(.states(let states)) = result else {
                return search.body(.failure(Self.error(of: result)))
            }
            for (id, state) in states { search.found[id] = keep(state) }
            addDeparted(to: search)
            goOn(search, from: asked.endIndex)
        }
    }

    /// Goes on once all before `end` were looked for.
    private func goOn<Kept>(_ search: Search<Kept>, from end: Int) {
        // One that there is not makes the answer, so that nothing more is read.
        guard search.missing[..<end].allSatisfy({ search.found[$0] != nil || isKnown($0, to: search.caller) })
        else { return finish(search) }
        search.missing = search.missing[end...]
        goOn(search)
    }

    private func addDeparted<Kept>(to search: Search<Kept>) {
        for id in table.departedIDs.sorted() where search.wanted.contains(id) { addKnown(id, to: search) }
    }

    /// Adds what is known of a job without the store.
    private func addKnown<Kept>(_ id: JobID, to search: Search<Kept>) {
        switch table.known(id) {
        case .active(let entry): add(entry.job, to: search)
        case .left(let job): add(job, to: search)
        case .removed: search.found[id] = nil
        case nil: break
        }
    }

    private func add<Kept>(_ job: Job, to search: Search<Kept>) {
        if search.caller.sees(job) { search.found[job.id] = search.keep(job) }
    }

    private func finish<Kept>(_ search: Search<Kept>) {
        var all: [Kept] = []
        all.reserveCapacity(search.ids.count)
        for id in search.ids {
            addKnown(id, to: search)
            guard let kept = search.found[id] else { return search.body(.failure(.noJob(id))) }
            all.append(kept)
        }
        search.body(.success(all))
    }
}

/// Bounds the reads of single jobs and of schedules, a few at a time for each user: what was read is in memory until it is
/// answered, and very many requests can wait.
struct PendingFinds {
    private struct Line {
        var open = 0
        var waiting: Deque<() -> Void> = []
    }

    private static let mostAtOnce = 4

    private var lines: [UInt32: Line] = [:]

    /// Whether one may be read now; where not, `again` is called when it may be.
    mutating func begin(for user: UInt32, else again: @escaping () -> Void) -> Bool {
        if lines[user, default: Line()].open < Self.mostAtOnce {
            lines[user, default: Line()].open += 1
            return true
        }
        lines[user]?.waiting.append(again)
        return false
    }

    /// One was read.
    mutating func end(for user: UInt32) {
        lines[user]?.open -= 1
    }

    /// The next that may look for its job; it begins a read only where that is not in memory by now.
    mutating func next(for user: UInt32) -> (() -> Void)? {
        guard let line = lines[user], line.open < Self.mostAtOnce else { return nil }
        if line.waiting.isEmpty, line.open == 0 { lines[user] = nil }
        return lines[user]?.waiting.popFirst()
    }

    /// Removes and gives all that wait.
    mutating func drop() -> [() -> Void] {
        let waiting = lines.sorted { $0.key < $1.key }.flatMap(\.value.waiting)
        lines = lines.mapValues { Line(open: $0.open) }
        return waiting
    }
}
