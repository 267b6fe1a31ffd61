import JobModel

/// The outcome of a list, made of those of its children, which are read a few at a time.
extension JobCore {
    /// Every child is finished: makes the list's outcome of theirs.
    func endList(_ entry: ActiveJob) {
        guard let join = lists[entry.job.id]?.join else { return }
        closeList(entry)
        entry.step += 1
        let (step, id) = (entry.step, entry.job.id)
        gather(join, id, link: entry.job.link) { [unowned self] outcome, size in
            guard table[id] === entry, entry.step == step, phase == .serving else { return }
            stepEnded(entry, outcome, size: size)
        }
    }

    /// Calls `done` with the outcome of a list and its `measuredSize`, which is not reckoned anew for a success.
    private func gather(
        _ join: ListJoin, _ parent: JobID, link: Int, _ done: @escaping (Outcome, OutcomeSize?) -> Void
    ) {
        switch join.decision {
        case .succeeded(let index):
            children(parent, link, from: index, limit: 1) { found in
                guard case .success(let jobs) = found, let job = jobs.first, case .success(let value) = job.carried
                else {
                    return done(.failure(found.failure ?? Self.gone(index, parent)), nil)
                }
                let frame = Outcome.success(["index": JSON(index), "value": .null]).measuredSize
                let size = OutcomeSize(
                    text: frame.text - JSON.null.storedSize + job.resultSize,
                    memory: frame.memory - Int64(JSON.null.parsedCost) + job.carriedMemory)
                done(.success(["index": JSON(index), "value": value]), size)
            }
        case .failed(let index):
            children(parent, link, from: index, limit: 1) { found in
                done(
                    found.flatMap { jobs in
                        guard let job = jobs.first else { return .failure(Self.gone(index, parent)) }
                        let cause = Self.failure(of: job, index)
                        var error = JobError(
                            .list, "Child \(index) (job \(job.id)) failed, and with it the list: \(cause.message)")
                        error.cause = cause
                        return .failure(error)
                    }, nil)
            }
        case nil:
            gatherAll(join, parent, link, from: 0, ListResult(mode: join.mode, settings.limits), done)
        }
    }

    /// Children that are read at once; their results are in memory then.
    private static let page = 64

    private func gatherAll(
        _ join: ListJoin, _ parent: JobID, _ link: Int, from start: Int, _ result: ListResult,
        _ done: @escaping (Outcome, OutcomeSize?) -> Void
    ) {
        guard start < join.ids.count else { return done(result.outcome, result.measuredSize) }
        children(parent, link, from: start, limit: Self.page) { [unowned self] found in
            var result = result
            switch found {
            case .failure(let error): done(.failure(error), nil)
            case .success(let jobs):
                guard !jobs.isEmpty else { return done(.failure(Self.gone(start, parent)), nil) }
                for (offset, job) in jobs.enumerated() {
                    if let failure = result.add(job, Self.failure(of: job, start + offset)) {
                        return done(.failure(failure), nil)
                    }
                }
                gatherAll(join, parent, link, from: start + jobs.count, result, done)
            }
        }
    }

    private func children(
        _ parent: JobID, _ link: Int, from index: Int, limit: Int, _ body: @escaping (Result<[Job], JobError>) -> Void
    ) {
        read(.children(of: parent, link: link, from: index, limit: limit)) { result in
            switch result {
            case .success(.jobs(let jobs)): body(.success(jobs))
            default:
                body(
                    .failure(
                        JobError(
                            .storage,
                            "The children of job \(parent) cannot be read: \(Self.error(of: result).message)")))
            }
        }
    }

    private static func gone(_ index: Int, _ parent: JobID) -> JobError {
        JobError(.storage, "Child \(index) of job \(parent) is gone; retry the job.")
    }

    private static func failure(of job: Job, _ index: Int) -> JobError {
        var error = Job.Stop.cancelled.error
        if case .failure(let failure) = job.carried { error = failure }
        error.job = job.id
        error.index = index
        return error
    }

    /// How far the children of an open list are: in bytes where any of them counts bytes, else in finished children. Of another
    /// job it is its own progress.
    func childrenProgress(of entry: ActiveJob) -> Progress? {
        guard let list = lists[entry.job.id] else { return entry.progress }
        let join = list.join
        var bytes = list.endedBytes
        var total: Int64? = entry.children.count < join.ids.count - join.endedCount ? nil : bytes
        var countsBytes = bytes > 0
        // In no order, as it is a sum.
        for id in entry.children {
            guard let child = table[id] else { continue }
            guard let progress = progress(of: child), progress.unit == .bytes else {
                total = nil
                continue
            }
            countsBytes = true
            bytes = bytes.saturatingAdding(progress.completed)
            total = total.flatMap { sum in progress.total.map { sum.saturatingAdding($0) } }
        }
        return countsBytes
            ? Progress(completed: bytes, total: total)
            : Progress(completed: Int64(join.endedCount), total: Int64(join.ids.count), unit: .jobs)
    }

    func progress(of entry: ActiveJob) -> Progress? {
        var progress = childrenProgress(of: entry)
        progress?.rate = entry.progress?.rate
        return progress
    }
}

/// The result of a list whose children are all finished, put together page by page.
private struct ListResult {
    private let mode: ListMode
    private let limit: Int
    /// What the result may take in memory once it is read from the store.
    private let budget: Int
    private var cost = 0
    private var elements: [JSON] = []
    private var failure = JobError(.list, "")
    /// Bytes of the failures that it lists.
    private var failuresSize = 0
    private var children = 0
    /// Bytes of the result: the brackets, and with each but the first a comma.
    private var size: Int64 = 1

    init(mode: ListMode, _ limits: JobLimits) {
        self.mode = mode
        limit = limits.body
        budget = limits.composedValues
        failure.failures = []
    }

    /// Adds a child; gives why the list cannot have a result, where that is so.
    mutating func add(_ job: Job, _ failure: JobError) -> JobError? {
        children += 1
        let element: JSON
        // What came of a child can be large; its size is known.
        let elementSize: Int64
        switch (mode, job.carried) {
        case (.first, _):
            self.failure.add(failure: failure, listed: &failuresSize)
            return nil
        case (.settled, .success(let value)):
            element = ["ok": true, "value": value]
            elementSize = Self.settledFrame + job.resultSize
        case (.settled, _):
            element = ["ok": false, "error": failure.json]
            elementSize = element.storedSize
        case (.all, .success(let value)):
            element = value
            elementSize = job.resultSize
        case (.all, _):
            element = .null
            elementSize = element.storedSize
        }
        size = size.saturatingAdding(elementSize + 1)
        cost = cost.saturatingAdding(element.parsedCost)
        elements.append(element)
        guard size <= limit else {
            return JobError(.tooLarge, "The results of the list are larger than \(limit) bytes; select less of each.")
        }
        guard cost <= budget else {
            return JobError(
                .tooLarge, "The results of the list take more than \(budget) bytes of memory; select less of each.")
        }
        return nil
    }

    private static let settledFrame = (["ok": true, "value": .null] as JSON).storedSize - JSON.null.storedSize

    /// That of the outcome, where it is a success.
    var measuredSize: OutcomeSize? {
        guard mode != .first else { return nil }
        let frame: JSON = elements.isEmpty ? [] : [.null]
        let memory = cost + frame.parsedCost - (elements.isEmpty ? 0 : JSON.null.parsedCost)
        return OutcomeSize(text: max(2, size) + Job.resultFrame, memory: Int64(memory))
    }

    var outcome: Outcome {
        guard mode == .first else { return .success(.array(elements)) }
        var error = failure
        error.message = "None of the \(children) children succeeded; see failures."
        return .failure(error)
    }
}

extension JSON {
    fileprivate var storedSize: Int64 { Int64(size) }
}

extension Job {
    /// Bytes of the value that it succeeded with.
    fileprivate var resultSize: Int64 { carriedSize - Job.resultFrame }
}
