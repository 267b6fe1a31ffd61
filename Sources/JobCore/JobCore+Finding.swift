import JobModel

/// Finding many jobs without having them in memory whole.
extension JobCore {
    /// What is found so far of the jobs that somebody asked for.
    private struct Search {
        /// In the order asked for.
        let ids: [JobID]
        let wanted: Set<JobID>
        let caller: Caller
        let body: (Result<[JobView], CoreError>) -> Void
        /// Those that the store is still to be asked for.
        var missing: ArraySlice<JobID> = []
        var found: [JobID: JobView] = [:]
        /// Bytes of results that may still be kept.
        var results = JobCore.mostResults
    }

    /// Bytes of results that are kept for one answer; no answer shows more.
    private static let mostResults = 2 * JobPage.mostResults
    /// Jobs that the store is asked for at once.
    private static let mostAtOnce = 4096

    /// These jobs as they are now, each as it is told among others.
    func snapshots(_ jobs: [Job]) -> [JobView] {
        var results = Self.mostResults
        return jobs.map { snapshot($0).brief(results: &results) }
    }

    /// Jobs that `caller` may see, as they are now and as each is told among others, in the order asked for; an error
    /// names the first that is none.
    func findAll(_ ids: [JobID], for caller: Caller, _ body: @escaping (Result<[JobView], CoreError>) -> Void) {
        var search = Search(ids: ids, wanted: Set(ids), caller: caller, body: body)
        search.missing = ids.filter { table.known($0) == nil }[...]
        // What left before the first question is remembered for the sake of others only, which may be answered first.
        addDeparted(to: &search)
        goOn(search)
    }

    private func goOn(_ search: Search) {
        let asked = search.missing.prefix(Self.mostAtOnce)
        guard !asked.isEmpty else { return finish(search) }
        read(.firstJobs(Array(asked))) { [unowned self] result in
            guard case .success(.jobs(let rows)) = result else {
                return search.body(.failure(Self.error(of: result)))
            }
            var search = search
            for row in rows { add(row, to: &search) }
            // Some may have left the memory meanwhile, and be forgotten before the next answer.
            addDeparted(to: &search)
            let isPartial = StoredJobPage.isFull(rows)
            let last = isPartial ? rows.last.flatMap { row in asked.firstIndex(of: row.id) } : nil
            search.missing = search.missing[((last ?? asked.endIndex - 1) + 1)...]
            goOn(search)
        }
    }

    private func addDeparted(to search: inout Search) {
        for id in table.departedIDs.sorted() where search.wanted.contains(id) {
            switch table.known(id) {
            case .left(let job): add(job, to: &search)
            case .removed: search.found[id] = nil
            case .active, nil: break
            }
        }
    }

    private func add(_ job: Job, to search: inout Search) {
        search.found[job.id] = snapshot(job).brief(results: &search.results)
    }

    private func finish(_ search: Search) {
        var (search, views) = (search, [JobView]())
        views.reserveCapacity(search.ids.count)
        for id in search.ids {
            switch table.known(id) {
            case .active(let entry): add(entry.job, to: &search)
            case .left(let job): add(job, to: &search)
            case .removed: search.found[id] = nil
            case nil: break
            }
            guard let view = search.found[id], search.caller.sees(view.job) else {
                return search.body(.failure(.noJob(id)))
            }
            views.append(view)
        }
        search.body(.success(views))
    }
}
