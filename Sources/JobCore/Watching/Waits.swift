import JobModel

/// The requests that wait for the end of jobs.
struct Waits {
    struct Wait {
        let request: RequestID
        /// In the order asked for.
        let ids: [JobID]
        let caller: Caller
        fileprivate var open: Set<JobID>
    }

    private var waits: [RequestID: Wait] = [:]
    private var byJob: [JobID: Set<RequestID>] = [:]

    var count: Int { waits.count }

    mutating func add(_ request: RequestID, _ ids: [JobID], _ caller: Caller) {
        let open = Set(ids)
        waits[request] = Wait(request: request, ids: ids, caller: caller, open: open)
        for id in open { byJob[id, default: []].insert(request) }
    }

    /// A job is finished, for `request` alone where one is named; gives the waits that have nothing left to wait for.
    mutating func finished(_ id: JobID, of request: RequestID? = nil) -> [Wait] {
        let told: [RequestID]
        if let request {
            told = [request]
            drop(request, id)
        } else {
            // As a whole: very many may wait for one job.
            told = byJob.removeValue(forKey: id)?.sorted() ?? []
        }
        var over: [Wait] = []
        for request in told {
            waits[request]?.open.remove(id)
            if let wait = waits[request], wait.open.isEmpty {
                waits[request] = nil
                over.append(wait)
            }
        }
        return over
    }

    /// Removes a wait that was given up or timed out; false where there is none.
    @discardableResult
    mutating func remove(_ request: RequestID) -> Bool {
        guard let wait = waits.removeValue(forKey: request) else { return false }
        for id in wait.open { drop(request, id) }
        return true
    }

    private mutating func drop(_ request: RequestID, _ id: JobID) {
        byJob[id]?.remove(request)
        if byJob[id]?.isEmpty == true { byJob[id] = nil }
    }

    /// Every open wait, oldest first.
    var all: [RequestID] { waits.keys.sorted() }
}
