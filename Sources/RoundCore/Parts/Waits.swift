import JobModel

/// Requests that wait for something that a later round brings. They were learned outside: a reset leaves them alone.
struct Waits {
    /// What is waited for.
    enum Event: Hashable {
        /// A job that was told to end has ended.
        case stopped(JobID)
        /// A piece of work is done.
        case work(WorkID)
    }

    /// Jobs that a wait still waits for.
    private var open: [RequestID: Set<JobID>] = [:]
    private var byJob: [JobID: Set<RequestID>] = [:]
    /// Requests that are answered once something has happened, with their answer.
    private var events: [Event: [(request: RequestID, answer: CoreAnswer)]] = [:]

    var count: Int { open.count }
    var requests: [RequestID] { open.keys + events.values.flatMap { $0.map(\.request) } }

    mutating func add(_ request: RequestID, _ jobs: [JobID]) {
        let jobs = Set(jobs)
        open[request] = jobs
        for job in jobs { byJob[job, default: []].insert(request) }
    }

    /// A job has ended; gives the waits that are over by that.
    mutating func ended(_ job: JobID) -> [RequestID] {
        guard let requests = byJob.removeValue(forKey: job) else { return [] }
        var over: [RequestID] = []
        for request in requests.sorted() {
            open[request]?.remove(job)
            guard open[request]?.isEmpty == true else { continue }
            open[request] = nil
            over.append(request)
        }
        return over
    }

    /// These jobs have ended before the wait began; whether it is over by that.
    mutating func ended(_ jobs: [JobID], of request: RequestID) -> Bool {
        guard open[request] != nil else { return false }
        for job in jobs {
            open[request]?.remove(job)
            byJob[job]?.remove(request)
            if byJob[job]?.isEmpty == true { byJob[job] = nil }
        }
        guard open[request]?.isEmpty == true else { return false }
        open[request] = nil
        return true
    }

    mutating func add(_ request: RequestID, until event: Event, _ answer: CoreAnswer) {
        events[event, default: []].append((request, answer))
    }

    /// Something has happened; gives the requests that waited for it.
    mutating func happened(_ event: Event) -> [(request: RequestID, answer: CoreAnswer)] {
        events.removeValue(forKey: event) ?? []
    }

    /// A request is answered otherwise, or no client wants the answer.
    mutating func remove(_ request: RequestID) {
        for job in open.removeValue(forKey: request) ?? [] {
            byJob[job]?.remove(request)
            if byJob[job]?.isEmpty == true { byJob[job] = nil }
        }
        guard !events.isEmpty else { return }
        for (event, waiting) in events where waiting.contains(where: { $0.request == request }) {
            let left = waiting.filter { $0.request != request }
            events[event] = left.isEmpty ? nil : left
        }
    }
}
